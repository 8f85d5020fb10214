#include "fs/cutoff.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "fs/mount_point.h"

namespace rocefs {

Cutoff::Cutoff(dev_t device, std::string mount_point)
    : device_(device), mount_point_(std::move(mount_point)) {
  std::string file = fmt::format("/sys/fs/fuse/connections/{}/abort", minor(device));
  abort_ = Fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
}

// The kernel lets the open file go when the connection ends. A forced unmount cuts the connection
// before it looks whether the mount is in use; here it is, so that it stays to be seen dead.
bool Cutoff::cut() const {
  if (abort_ && ::write(abort_.get(), "1", 1) == 1) return true;
  if (device_ == 0 || mounted_device(mount_point_) != device_) return false;
  Fd use(::open(mount_point_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return ::umount2(mount_point_.c_str(), MNT_FORCE) == 0 || errno == EBUSY;
}

}  // namespace rocefs
