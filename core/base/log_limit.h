// LogLimit: how many lines a second are passed on of what somebody else logs: no more than people
// can read, for a line at each call of an algorithm would leave room for nothing else.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

// One thread at a time.
class LogLimit {
 public:
  static constexpr unsigned kLinesPerSecond = 100;

  // Whether a line may be said at `now`, in wall time. `say(text)` is told before that what was
  // left out until then; false: it could not be said, and is kept for the next time.
  template <class Say>
  bool admit(TimeNs now, Say say) {
    if (now - second_ >= kSecond) {
      second_ = now;
      said_ = 0;
      settle(say);
    }
    if (said_ >= kLinesPerSecond) {
      leave_out();
      return false;
    }
    ++said_;
    return true;
  }
  // A line that was admitted could not be said.
  void leave_out() { ++left_out_; }
  // Says what was left out. For who will not say more; admit() does it by itself.
  template <class Say>
  void settle(Say say) {
    if (left_out_ > 0 && say(fmt::format("{} lines were left out", left_out_))) left_out_ = 0;
  }

 private:
  TimeNs second_ = -kSecond;
  unsigned said_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace rocefs
