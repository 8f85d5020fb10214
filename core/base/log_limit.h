// LogLimit: limits the lines per second taken over from another program's log. A line at each call
// of an algorithm would leave no room for other lines.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

// Single-threaded.
class LogLimit {
 public:
  static constexpr unsigned kLinesPerSecond = 100;

  // Returns whether a line may be logged at `now`, in wall time. Calls `say(text)` first with a
  // count of the suppressed lines; if that returns false the count is kept for the next call.
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
  // Counts an admitted line that could not be logged.
  void leave_out() { ++left_out_; }
  // Logs the count of suppressed lines. For a caller that logs no more lines; admit() does this
  // itself.
  template <class Say>
  void settle(Say say) {
    if (left_out_ > 0 && say(fmt::format("{} lines suppressed", left_out_))) left_out_ = 0;
  }

 private:
  TimeNs second_ = -kSecond;
  unsigned said_ = 0;
  uint64_t left_out_ = 0;
};

// A LogLimit for each of `Levels` levels: lines that nobody is shown take no room from those that
// are.
template <size_t Levels>
using LogLimits = std::array<LogLimit, Levels>;

}  // namespace rocefs
