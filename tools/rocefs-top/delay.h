// Delay between two looks, as people write it.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace rocefs::top {

inline constexpr TimeNs kShortestDelay = 50 * kMillisecond;
inline constexpr TimeNs kLongestDelay = 3600 * kSecond;

// A number of seconds, or a time with a unit: 0.5, 500ms. EINVAL, ERANGE.
Result<TimeNs> parse_delay(std::string text);
std::string delay_text(TimeNs delay);

}  // namespace rocefs::top
