// LoopTimer: calls back once, later, in wall time, on the control thread. It needs no descriptor: a
// daemon whose descriptors others have used up keeps its time.
#pragma once

#include <functional>

#include "core/base/time.h"
#include "core/loop/poll_loop.h"

namespace rocefs {

// Control thread. The loop outlives it.
class LoopTimer final : public Timed {
 public:
  LoopTimer(PollLoop& loop, std::function<void()> fired);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  // Takes the place of the time before. At once where `after` is not positive; not before, and up
  // to a millisecond later.
  void arm(TimeNs after);
  void disarm();

 private:
  void expire() override;

  PollLoop& loop_;
  std::function<void()> fired_;
  TimeNs due_ = kNever;  // kNever: not armed
};

}  // namespace rocefs
