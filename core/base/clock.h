// The clocks behind the scheduler's `now`. This file and rng are the only places where wall time or
// chance enters.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

enum class ClockMode { kReal, kVirtual };

// Nanoseconds of the machine's monotonic clock. Any thread.
TimeNs monotonic_ns();
// The date, for file times. Any thread.
timespec date_now();

// Engine time is base + (monotonic - since) / dilation.
struct ClockReading {
  TimeNs base = 0;
  TimeNs since = 0;
  uint64_t dilation = 1;
};

// Engine time slaved to the monotonic clock: (monotonic - epoch) / dilation. The core's thread
// moves the epoch and sets the dilation; any thread may read.
class RealClock {
 public:
  explicit RealClock(uint64_t dilation, TimeNs now = 0);

  TimeNs now() const { return now_at(monotonic_ns()); }
  // Engine time at a reading of the monotonic clock.
  TimeNs now_at(TimeNs monotonic) const;
  uint64_t dilation() const { return dilation_.load(std::memory_order_relaxed); }
  ClockReading reading() const;
  // Core thread, or before it starts: `changed` is called with each new reading.
  void on_change(std::function<void(const ClockReading&)> changed) {
    listeners_.push_back(std::move(changed));
  }

  // Core thread. Engine time goes on from now(), `dilation` times slower than the wall. At least 1.
  void set_dilation(uint64_t dilation);
  // Core thread. Engine time stands `engine_ns` earlier from now on.
  void slip(TimeNs engine_ns);

 private:
  // Read consistently through an even sequence number.
  void rebase(TimeNs base, TimeNs since, uint64_t dilation);

  std::atomic<uint64_t> sequence_{0};
  std::atomic<TimeNs> base_;
  std::atomic<TimeNs> since_;
  std::atomic<uint64_t> dilation_;
  std::vector<std::function<void(const ClockReading&)>> listeners_;
};

}  // namespace rocefs
