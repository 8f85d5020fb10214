#include "tools/watch/quiet_mount.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/passed_descriptors.h"
#include "core/process/mount_table.h"

namespace rocefs {
namespace {

Fd copied(const char* directory) {
  return Fd(::open_tree(AT_FDCWD, directory, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

// A user may copy mounts in namespaces of their own. They end with the child: no copy of any other
// mount stays.
Fd copied_by_child(const char* directory) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Fd();
  const Fd own(ends[0]);
  Fd other(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Fd();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(1);
    const Fd copy = copied(directory);
    const char octet = 0;
    ::_exit(copy && send_message(other.get(), &octet, sizeof octet, copy.get()) == 0 ? 0 : 1);
  }
  other.reset();
  char octet;
  Fd received[1];
  if (receive_message(own.get(), &octet, sizeof octet, received) <= 0) received[0].reset();
  ::waitpid(child, nullptr, 0);
  return std::move(received[0]);
}

}  // namespace

Result<QuietMount> QuietMount::open(const std::string& directory) {
  Fd table(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  Fd plain(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!table || !plain || ::fstat(plain.get(), &status) != 0) {
    const int code = errno;
    return errorf(code, "{}: {}", directory, ::strerror(code));
  }
  Fd copy = copied(directory.c_str());
  if (!copy) copy = copied_by_child(directory.c_str());
  // A copy of another mount, which took this one's place in between, or that this user may not use.
  struct stat copied {};
  if (copy && (::fstat(copy.get(), &copied) != 0 || copied.st_dev != status.st_dev)) copy.reset();
  return QuietMount(copy ? std::move(copy) : std::move(plain), std::move(table), status.st_dev);
}

bool QuietMount::ended() const {
  pollfd changed{table_.get(), POLLPRI, 0};
  if (*ended_ || ::poll(&changed, 1, 0) <= 0) return *ended_;
  Result<std::vector<Mount>> mounts = read_mount_table(table_.get());
  auto same = [this](const Mount& mount) { return mount.device == device_; };
  if (mounts && std::none_of(mounts->begin(), mounts->end(), same)) *ended_ = true;
  return *ended_;
}

}  // namespace rocefs
