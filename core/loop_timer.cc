#include "core/loop_timer.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

namespace rocefs {

Fd LoopTimer::open() {
  return Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

LoopTimer::LoopTimer(PollLoop& loop, std::function<void()> fired)
    : LoopTimer(loop, open(), std::move(fired)) {}

LoopTimer::LoopTimer(PollLoop& loop, Fd timer, std::function<void()> fired)
    : loop_(loop), timer_(std::move(timer)) {
  assert(timer_);
  loop_.watch(timer_.get(), [fd = timer_.get(), fired = std::move(fired)] {
    uint64_t times;
    // Nothing to read: it was disarmed after the loop had seen it.
    if (::read(fd, &times, sizeof times) == sizeof times) fired();
  });
}

LoopTimer::~LoopTimer() {
  loop_.unwatch(timer_.get());
}

void LoopTimer::arm(TimeNs after) {
  set(std::max<TimeNs>(after, 1));
}

void LoopTimer::disarm() {
  set(0);
}

void LoopTimer::set(TimeNs after) {
  itimerspec time{};
  time.it_value.tv_sec = after / kSecond;
  time.it_value.tv_nsec = after % kSecond;
  ::timerfd_settime(timer_.get(), 0, &time, nullptr);
}

}  // namespace rocefs
