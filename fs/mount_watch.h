// MountWatch: notices that a file system is mounted nowhere any more, though somebody may still use
// it: the mount was taken away from its place.
#pragma once

#include <sys/types.h>

#include <functional>

#include "core/fd.h"
#include "core/poll_loop.h"

namespace rocefs {

// On the loop's thread.
class MountWatch {
 public:
  // `gone` runs once, when no mount of `device` is in the mount table of this process; it may be
  // called before this returns.
  MountWatch(dev_t device, PollLoop& loop, std::function<void()> gone);
  ~MountWatch();
  MountWatch(const MountWatch&) = delete;
  MountWatch& operator=(const MountWatch&) = delete;

 private:
  void look();

  const dev_t device_;
  PollLoop& loop_;
  std::function<void()> gone_;
  Fd table_;
};

}  // namespace rocefs
