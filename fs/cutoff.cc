#include "fs/cutoff.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "fs/mount_point.h"

namespace rocefs {
namespace {

// Returns the mount's unique id (Linux 6.8), which is never reused; 0 if the kernel has none. Does
// not query the server.
uint64_t number_of(int directory, const char* path) {
  constexpr unsigned kMountIdUnique = 0x4000;  // STATX_MNT_ID_UNIQUE
  constexpr int kFlags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  struct statx told {};
  bool known = ::statx(directory, path, kFlags, kMountIdUnique, &told) == 0 &&
               (told.stx_mask & kMountIdUnique) != 0;
  return known ? told.stx_mnt_id : 0;
}

}  // namespace

Cutoff::Cutoff(dev_t device, std::string mount_point)
    : device_(device),
      mount_point_(std::move(mount_point)),
      number_(number_of(AT_FDCWD, mount_point_.c_str())) {
  std::string file = fmt::format("/sys/fs/fuse/connections/{}/abort", minor(device));
  abort_ = Fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
}

// Cuts the connection. The kernel releases the open file when the connection ends. A forced unmount
// cuts the connection before it checks whether the mount is in use; `use` keeps it in use, so that
// the dead mount stays visible.
bool Cutoff::cut() const {
  if (abort_ && ::write(abort_.get(), "1", 1) == 1) return true;
  if (device_ == 0 || mounted_device(mount_point_) != device_) return false;
  Fd use(::open(mount_point_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!use || number_of(use.get(), "") != number_) return false;
  std::string held = fmt::format("/proc/self/fd/{}", use.get());
  return ::umount2(held.c_str(), MNT_FORCE) == 0 || errno == EBUSY;
}

}  // namespace rocefs
