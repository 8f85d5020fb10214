// LoopTimer: calls back once, later, in wall time, on the control thread.
#pragma once

#include <functional>

#include "core/fd.h"
#include "core/poll_loop.h"
#include "core/time.h"

namespace rocefs {

// Control thread. The loop outlives it.
class LoopTimer {
 public:
  LoopTimer(PollLoop& loop, std::function<void()> fired);
  // With a descriptor of open()'s, for whoever others may leave without one.
  LoopTimer(PollLoop& loop, Fd timer, std::function<void()> fired);
  ~LoopTimer();
  // Null, with errno, when there is none.
  static Fd open();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  // Takes the place of the time before. At once where `after` is not positive.
  void arm(TimeNs after);
  void disarm();

 private:
  void set(TimeNs after);

  PollLoop& loop_;
  Fd timer_;
};

}  // namespace rocefs
