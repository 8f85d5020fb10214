#include "fs/mount_point.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "core/base/fd.h"
#include "core/process/bounded_look.h"
#include "core/process/mount_table.h"
#include "core/process/open_below.h"

namespace rocefs {
namespace {

// Returns whether the open file's server is gone. Queries anew: the kernel may cache for an hour.
bool is_dead(const Fd& file) {
  struct statx status;
  constexpr int kFlags = AT_STATX_FORCE_SYNC | AT_EMPTY_PATH;
  // Retry: if a server dies during the query, it fails with ECONNABORTED.
  for (int i = 0; i < 2; ++i) {
    if (::statx(file.get(), "", kFlags, STATX_TYPE, &status) == 0) return false;
    if (errno != ECONNABORTED) break;
  }
  return errno == ENOTCONN;
}

// Opens the directory on top at the path without a request to a server that is mounted there. A
// resolved path has no symbolic links: one has come since, and leads elsewhere.
Fd open_top(const std::string& path) {
  constexpr int kFlags = O_PATH | O_NOFOLLOW;
  Fd top = open_below(AT_FDCWD, path, kFlags, RESOLVE_NO_SYMLINKS);
  if (top || (errno != ENOSYS && errno != EPERM)) return top;
  return Fd(::open(path.c_str(), kFlags | O_CLOEXEC));
}

// Returns the rocefs mount that an open file is in.
std::optional<Mount> rocefs_of(const Fd& file) {
  std::ifstream lines(fmt::format("/proc/self/fdinfo/{}", file.get()));
  int id = 0;
  for (std::string word; lines >> word;) {
    if (word == "mnt_id:") lines >> id;
  }
  for (const Mount& mount : mount_table()) {
    if (mount.id == id && mount.is_rocefs()) return mount;
  }
  return std::nullopt;
}

// Opens the topmost mount there, if it is a rocefs without a server.
Fd open_dead(const std::string& path) {
  Fd top = open_top(path);
  bool dead = top && is_dead(top) && rocefs_of(top);
  return dead ? std::move(top) : Fd();
}

// Detaches what was opened, whatever its path leads to by now.
bool detach(const Fd& top) {
  return ::umount2(fmt::format("/proc/self/fd/{}", top.get()).c_str(), MNT_DETACH) == 0;
}

// Takes the lock between instances, held until the descriptor is closed; nothing on a time-out.
// Everybody who may mount may open /dev/fuse.
Fd take_turn() {
  constexpr int kTries = 100, kBetweenMs = 10;
  Fd device(::open("/dev/fuse", O_RDONLY | O_CLOEXEC));
  for (int i = 0; device && i < kTries; ++i) {
    if (::flock(device.get(), LOCK_EX | LOCK_NB) == 0) return device;
    ::poll(nullptr, 0, kBetweenMs);
  }
  return {};
}

bool run_fusermount(const std::string& path) {
  const char* arguments[] = {"fusermount3", "-u", "-z", "-q", "--", path.c_str(), nullptr};
  pid_t pid = 0;
  int status = 0;
  return ::posix_spawnp(&pid, arguments[0], nullptr, nullptr, const_cast<char**>(arguments),
                        ::environ) == 0 &&
         ::waitpid(pid, &status, 0) == pid && status == 0;
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

// Leaves the check to fusermount3 where umount2(2) is not allowed: it unmounts nothing but a FUSE
// mount of its own user.
bool unmount_own(const std::string& path, dev_t device) {
  Fd top = open_top(path);
  std::optional<Mount> mount = top ? rocefs_of(top) : std::nullopt;
  if (!mount || mount->device != device) return false;
  return detach(top) || (errno == EPERM && run_fusermount(path));
}

// Holds the mount open while it is checked and detached: of two instances that find the same dead
// mount, the slower one must not detach what the faster one has mounted instead.
bool unmount_dead(const std::string& path) {
  Fd top = open_dead(path);
  if (!top) return false;
  if (detach(top)) return true;
  if (errno != EPERM) return false;
  // Lock: fusermount3 knows only paths, so one instance at a time checks and detaches.
  Fd turn = take_turn();
  return turn && open_dead(path) && run_fusermount(path);
}

Result<std::string> check_mount_point(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  // Strip the trailing slash: a path whose last part is a dead mount still resolves without it.
  std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(trimmed.c_str(), nullptr),
                                                       std::free);
  if (!resolved) return failure(path, errno);
  std::string full = resolved.get();
  Look look = bounded_look(full);
  // Loop: several dead mounts may be stacked.
  while (look.code == ENOTCONN && unmount_dead(full)) {
    std::fprintf(stderr, "rocefs: %s: unmounting the dead mount of an earlier rocefs\n",
                 path.c_str());
    look = bounded_look(full);
  }
  if (look.code == ETIMEDOUT) {
    return errorf(ETIMEDOUT,
                  "{}: the file system mounted there does not answer; umount -f removes it", path);
  }
  if (look.code == ENOTCONN && mounted_device(full)) {
    return errorf(look.code, "{}: an earlier rocefs has ended, and its mount cannot be unmounted",
                  path);
  }
  if (look.code != 0) return failure(path, look.code);
  if (!S_ISDIR(look.mode)) return failure(path, ENOTDIR);
  if (mounted_device(full)) return errorf(EBUSY, "{}: busy: a rocefs is mounted there", path);
  // Check for one clear line: fusermount3 mounts only where its user may write.
  if (::geteuid() != 0 && ::access(full.c_str(), W_OK) != 0) return failure(path, errno);
  return full;
}

}  // namespace rocefs
