// WindowLimiter: CFR's limiter of one queue pair: octets in flight. The vendor publishes no law;
// this one is ours. Sans-IO and without timers: recovery is computed when the window is needed.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

class WindowLimiter {
 public:
  static constexpr uint32_t kFull = 512 * 1024;  // unlimited
  static constexpr TimeNs kCutGap = 50 * kMicrosecond;
  static constexpr TimeNs kQuiet = 55 * kMicrosecond;  // a step of recovery
  static constexpr uint32_t kFastSteps = 5;

  void reset() { *this = {}; }
  bool limits() const { return window_ < kFull; }
  uint32_t window() const { return window_; }

  // `packet`: octets of a full packet, the minimum of the window. Halves the window, unless that
  // happened less than kCutGap ago.
  void receive_cnp(uint32_t packet, TimeNs now);
  // Recovers: for each kQuiet without a CNP one of kFastSteps that halve the distance to the window
  // before the last cut, then a packet a step.
  void advance(uint32_t packet, TimeNs now);

 private:
  uint32_t window_ = kFull;
  uint32_t target_ = kFull;
  uint32_t steps_ = 0;
  TimeNs cut_at_ = -kCutGap;  // the first CNP comes late enough
  TimeNs quiet_since_ = 0;
};

}  // namespace rocefs
