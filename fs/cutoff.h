// Cutoff: ends the connection between the kernel and the server of a mount, even while a process
// stuck in the kernel holds its /dev/fuse. Waiting callers get an error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/base/fd.h"

namespace rocefs {

class Cutoff {
 public:
  Cutoff() = default;
  // Opens the mount whose files have this device number while it exists; later another mount may
  // have its number and path.
  Cutoff(dev_t device, std::string mount_point);

  // Cuts the connection by /sys/fs/fuse/connections, if that is mounted, or by umount2(MNT_FORCE).
  // Returns false if neither is allowed. Does nothing to a connection that has ended.
  bool cut() const;
  const std::string& mount_point() const { return mount_point_; }
  // Returns the descriptor that cut() needs; -1: none.
  int descriptor() const { return abort_.get(); }
  explicit operator bool() const { return device_ != 0; }

 private:
  dev_t device_ = 0;
  std::string mount_point_;
  uint64_t number_ = 0;
  Fd abort_;
};

}  // namespace rocefs
