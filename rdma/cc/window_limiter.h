// WindowLimiter: CFR's limiter of one queue pair: the octets that may be in flight. The vendor
// gives no law; this one is ours. Sans-IO, and without timers: time is reckoned when the window is
// asked for.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

class WindowLimiter {
 public:
  static constexpr uint32_t kFull = 512 * 1024;  // there is no limit in effect
  static constexpr TimeNs kCutGap = 50 * kMicrosecond;
  static constexpr TimeNs kQuiet = 55 * kMicrosecond;  // a step of recovery
  static constexpr uint32_t kFastSteps = 5;

  void reset() { *this = {}; }
  bool limits() const { return window_ < kFull; }
  uint32_t window() const { return window_; }

  // `packet` is the octets of a full one: the window never falls below it. Halves the window,
  // unless that happened less than kCutGap ago.
  void receive_cnp(uint32_t packet, TimeNs now);
  // Each kQuiet without a CNP: kFastSteps that halve the distance to the window before the last
  // cut, then a packet a step.
  void advance(uint32_t packet, TimeNs now);

 private:
  uint32_t window_ = kFull;
  uint32_t target_ = kFull;
  uint32_t steps_ = 0;
  TimeNs cut_at_ = -(TimeNs{1} << 62);
  TimeNs quiet_since_ = 0;
};

}  // namespace rocefs
