// MountWatch: notices that a file system is not mounted any more, even if it is still in use.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string_view>

#include "core/base/fd.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"

namespace rocefs {

// Loop's thread.
class MountWatch {
 public:
  // Reports why the mount table cannot be read; the watch retries.
  using Blind = std::function<void(std::string_view why)>;
  // Calls `gone` once, when no mount of `device` is in the mount table of this process, possibly
  // before this returns.
  MountWatch(dev_t device, PollLoop& loop, std::function<void()> gone, Blind blind);
  ~MountWatch();
  MountWatch(const MountWatch&) = delete;
  MountWatch& operator=(const MountWatch&) = delete;

 private:
  static constexpr TimeNs kAgain = kSecond;

  void open();
  void look();
  void try_again(std::string_view why);

  const dev_t device_;
  PollLoop& loop_;
  std::function<void()> gone_;
  const Blind blind_;
  bool is_blind_ = false;  // and that was told
  Fd table_;               // kept open: there may be no descriptor when it changes
  LoopTimer again_;
};

}  // namespace rocefs
