// LogBudget: limits the octets per second that the lines of a card's algorithms take in dmesg,
// which has 256 KiB for all. LogLimit limits their number, for each source and level; long ones
// would still push out the lines of others.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/time.h"

namespace rocefs {

// Single-threaded.
class LogBudget {
 public:
  static constexpr size_t kOctetsPerSecond = 16 * 1024;

  // Returns whether a line of this size may be logged at `now`, in wall time. Calls `say(text)`
  // first with a count of the lines that were left out in an earlier second.
  template <class Say>
  bool admit(TimeNs now, size_t octets, Say say) {
    if (now - second_ >= kSecond) {
      second_ = now;
      spent_ = 0;
      settle(say);
    }
    if (spent_ + octets > kOctetsPerSecond) {
      ++left_out_;
      return false;
    }
    spent_ += octets;
    return true;
  }
  // Logs the count; for a caller that logs no more lines.
  template <class Say>
  void settle(Say say) {
    if (left_out_ == 0) return;
    say(fmt::format("{} lines left out: more than {} KiB in a second", std::exchange(left_out_, 0),
                    kOctetsPerSecond / 1024));
  }

 private:
  TimeNs second_ = -kSecond;
  size_t spent_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace rocefs
