// LoopTimer: calls back once, later, in wall time, on the control thread. Needs no descriptor:
// timers work even when all descriptors are used up.
#pragma once

#include <functional>

#include "core/base/time.h"
#include "core/loop/poll_loop.h"

namespace rocefs {

// Control thread. The loop outlives the timer.
class LoopTimer final : public Timed {
 public:
  LoopTimer(PollLoop& loop, std::function<void()> fired);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  // Replaces an earlier deadline. Fires at once if `after` is not positive; otherwise never early,
  // and up to a millisecond late.
  void arm(TimeNs after);
  void disarm();

 private:
  void expire() override;

  PollLoop& loop_;
  std::function<void()> fired_;
  TimeNs due_ = kNever;  // kNever: not armed
};

}  // namespace rocefs
