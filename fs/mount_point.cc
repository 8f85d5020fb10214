#include "fs/mount_point.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fs/mount_table.h"

namespace rocefs {
namespace {

// What is there, as an errno. Asks the daemon of a mount anew: the kernel may remember for an hour.
int look_at(const std::string& path, mode_t& mode) {
  struct statx status;
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC, STATX_TYPE, &status) != 0) return errno;
  mode = status.stx_mode;
  return 0;
}

Error failure(const std::string& path, int code) {
  return errorf(code, "{}: {}", path, std::strerror(code));
}

}  // namespace

std::optional<dev_t> mounted_device(const std::string& path) {
  std::optional<dev_t> device;
  for (const Mount& mount : mount_table()) {
    if (mount.point != path) continue;
    device.reset();
    if (mount.is_rocefs()) device = mount.device;
  }
  return device;
}

void unmount_lazily(const std::string& path) {
  if (::umount2(path.c_str(), MNT_DETACH) == 0) return;
  const char* arguments[] = {"fusermount3", "-u", "-z", "-q", "--", path.c_str(), nullptr};
  pid_t pid = 0;
  if (::posix_spawnp(&pid, arguments[0], nullptr, nullptr, const_cast<char**>(arguments),
                     ::environ) == 0) {
    ::waitpid(pid, nullptr, 0);
  }
}

void unmount_dead(const std::string& path) {
  mode_t mode;
  if (mounted_device(path) && look_at(path, mode) == ENOTCONN) unmount_lazily(path);
}

Result<std::string> check_mount_point(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  // Without a slash at its end, a path whose last part is a dead mount can still be resolved.
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(trimmed.c_str(), nullptr),
                                                       std::free);
  if (!resolved) return failure(path, errno);
  std::string full = resolved.get();
  mode_t mode = 0;
  int code = look_at(full, mode);
  if (code == ENOTCONN && mounted_device(full)) {
    std::fprintf(stderr, "rocefs: %s: unmounting the dead mount of an earlier rocefs\n",
                 path.c_str());
    unmount_lazily(full);
    code = look_at(full, mode);
  }
  if (code != 0) return failure(path, code);
  if (!S_ISDIR(mode)) return failure(path, ENOTDIR);
  if (mounted_device(full)) return errorf(EBUSY, "{}: busy: a rocefs is mounted there", path);
  // fusermount3 mounts only where its user may write; asked here, that is one line.
  if (::geteuid() != 0 && ::access(full.c_str(), W_OK) != 0) return failure(path, errno);
  return full;
}

}  // namespace rocefs
