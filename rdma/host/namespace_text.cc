#include "rdma/host/namespace_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <utility>

namespace rocefs {

// The link of the descriptor has a path instead where the namespace is mounted on a file, as
// ip-netns(8) does. The device number, which no other file system has, is compared first: the ioctl
// would go to the server of a FUSE file.
std::string namespace_text(int fd) {
  struct statx given, own;
  constexpr int kFlags = AT_STATX_DONT_SYNC;
  if (::statx(fd, "", kFlags | AT_EMPTY_PATH, STATX_INO, &given) != 0 ||
      ::statx(AT_FDCWD, "/proc/self/ns/net", kFlags, STATX_INO, &own) != 0 ||
      given.stx_dev_major != own.stx_dev_major || given.stx_dev_minor != own.stx_dev_minor) {
    return "";
  }
  constexpr std::pair<int, const char*> kKinds[] = {
      {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mnt"}, {CLONE_NEWUTS, "uts"}, {CLONE_NEWNET, "net"}};
  const int wanted = ::ioctl(fd, NS_GET_NSTYPE);
  for (auto [kind, name] : kKinds) {
    if (kind == wanted) return fmt::format("{}:[{}]", name, given.stx_ino);
  }
  return "";
}

}  // namespace rocefs
