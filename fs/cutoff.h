// Cutoff: ends the connection between the kernel and whoever serves a mount, though somebody still
// holds its /dev/fuse: a process that the kernel keeps. Whoever waits for an answer gets an error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/base/fd.h"

namespace rocefs {

class Cutoff {
 public:
  Cutoff() = default;
  // Takes the mount whose files have this device number, while it is there: another may have its
  // number and its place later.
  Cutoff(dev_t device, std::string mount_point);

  // Through /sys/fs/fuse/connections, where it is mounted, or by umount2(MNT_FORCE). False where
  // neither is allowed. Does nothing to a connection that has ended.
  bool cut() const;
  // What cut() needs open; -1: nothing.
  int descriptor() const { return abort_.get(); }
  explicit operator bool() const { return device_ != 0; }

 private:
  dev_t device_ = 0;
  std::string mount_point_;
  uint64_t number_ = 0;
  Fd abort_;
};

}  // namespace rocefs
