#include "core/loop/loop_timer.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"

namespace rocefs {

LoopTimer::LoopTimer(PollLoop& loop, std::function<void()> fired)
    : loop_(loop), fired_(std::move(fired)) {}

LoopTimer::~LoopTimer() {
  disarm();
}

void LoopTimer::arm(TimeNs after) {
  disarm();
  due_ = monotonic_ns() + std::max<TimeNs>(after, 0);
  loop_.timers_.emplace(due_, this);
}

void LoopTimer::disarm() {
  if (due_ != kNever) loop_.timers_.erase({std::exchange(due_, kNever), this});
}

void LoopTimer::expire() {
  due_ = kNever;
  auto fired = fired_;  // may destroy the timer
  fired();
}

}  // namespace rocefs
