#include "core/base/clock.h"

#include <algorithm>

namespace rocefs {

TimeNs monotonic_ns() {
  timespec ts;
  ::clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * kSecond + ts.tv_nsec;
}

timespec date_now() {
  timespec ts;
  ::clock_gettime(CLOCK_REALTIME, &ts);
  return ts;
}

RealClock::RealClock(uint64_t dilation, TimeNs now)
    : base_(now), since_(monotonic_ns()), dilation_(dilation) {}

ClockReading RealClock::reading() const {
  for (;;) {
    uint64_t before = sequence_.load(std::memory_order_acquire);
    TimeNs base = base_.load(std::memory_order_acquire);
    TimeNs since = since_.load(std::memory_order_acquire);
    uint64_t dilation = dilation_.load(std::memory_order_acquire);
    if (before % 2 == 0 && sequence_.load(std::memory_order_acquire) == before) {
      return {base, since, dilation};
    }
  }
}

TimeNs RealClock::now_at(TimeNs monotonic) const {
  ClockReading clock = reading();
  TimeNs passed = std::max<TimeNs>(monotonic - clock.since, 0);
  return clock.base + passed / static_cast<TimeNs>(clock.dilation);
}

void RealClock::rebase(TimeNs base, TimeNs since, uint64_t dilation) {
  sequence_.fetch_add(1, std::memory_order_acq_rel);
  base_.store(base, std::memory_order_release);
  since_.store(since, std::memory_order_release);
  dilation_.store(dilation, std::memory_order_release);
  sequence_.fetch_add(1, std::memory_order_release);
  for (const auto& changed : listeners_) changed({base, since, dilation});
}

void RealClock::set_dilation(uint64_t dilation) {
  TimeNs wall = monotonic_ns();
  rebase(now_at(wall), wall, dilation);
}

void RealClock::slip(TimeNs engine_ns) {
  TimeNs wall = monotonic_ns();
  rebase(now_at(wall) - engine_ns, wall, dilation());
}

}  // namespace rocefs
