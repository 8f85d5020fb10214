#include "fs/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/fd.h"

namespace rocefs {
namespace {

Result<void> write_file(const char* path, const std::string& text) {
  Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
    return errorf(errno, "{}: {}", path, std::strerror(errno));
  }
  return {};
}

}  // namespace

Result<void> enter_user_namespace() {
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return errorf(errno, "no user namespace allowed here: {}", std::strerror(errno));
  }
  Result<void> written = write_file("/proc/self/uid_map", fmt::format("{0} {0} 1", uid));
  // setgroups must be denied before an unprivileged process may map its group (user_namespaces(7)).
  if (written) written = write_file("/proc/self/setgroups", "deny");
  if (written) written = write_file("/proc/self/gid_map", fmt::format("{0} {0} 1", gid));
  return written;
}

// In a chroot "/" may be no mount; each place must then be one, else a mount there would be visible
// outside if its parent mount is still shared.
Result<void> keep_mounts_inside(const std::vector<std::string>& places) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0) return {};
  if (errno != EINVAL) return errorf(errno, "/: {}", std::strerror(errno));
  for (const std::string& place : places) {
    if (::mount(nullptr, place.c_str(), nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
      return errorf(errno, "in this chroot neither / nor {} is a mount point", place);
    }
  }
  return {};
}

Result<void> enter_private_mounts(const std::vector<std::string>& places) {
  if (::unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM) return errorf(errno, "a mount namespace: {}", std::strerror(errno));
    if (Result<void> entered = enter_user_namespace(); !entered) return entered;
  }
  return keep_mounts_inside(places);
}

}  // namespace rocefs
