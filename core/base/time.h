// Engine time: integer nanoseconds since the engine began.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace rocefs {

using TimeNs = int64_t;

inline constexpr TimeNs kMicrosecond = 1'000;
inline constexpr TimeNs kMillisecond = 1'000'000;
inline constexpr TimeNs kSecond = 1'000'000'000;
// Later than every time.
inline constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();

// A place in a run: after `events` events of the instant `at`.
struct Moment {
  TimeNs at = 0;
  uint64_t events = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

}  // namespace rocefs
