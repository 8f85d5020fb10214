// SlowCallLog: limits the lines about slow calls. An algorithm that is slow once is slow at many
// calls, in each of which a queue pair waits: the first says it, the others are counted.
#pragma once

#include <map>
#include <string>

#include "core/base/time.h"

namespace rocefs {

// Single-threaded. Grows with the number of names that forget() has not seen.
class SlowCallLog {
 public:
  static constexpr TimeNs kAgain = 60 * kSecond;

  // Whether a slow call of this algorithm is logged at `now`, in wall time: if none has been for
  // kAgain.
  bool admit(const std::string& algorithm, TimeNs now) {
    auto [last, first] = last_.try_emplace(algorithm, now);
    if (!first && now - last->second < kAgain) return false;
    last->second = now;
    return true;
  }
  void forget() { last_.clear(); }

 private:
  std::map<std::string, TimeNs> last_;
};

}  // namespace rocefs
