// Engine time: integer nanoseconds since the engine began.
#pragma once

#include <cstdint>
#include <limits>

namespace rocefs {

using TimeNs = int64_t;

inline constexpr TimeNs kMicrosecond = 1'000;
inline constexpr TimeNs kMillisecond = 1'000'000;
inline constexpr TimeNs kSecond = 1'000'000'000;
// Later than everything.
inline constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();

}  // namespace rocefs
