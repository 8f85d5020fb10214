#include "tools/rocefs-top/delay.h"

#include <cerrno>

#include "core/base/units.h"

namespace rocefs::top {

Result<TimeNs> parse_delay(std::string text) {
  const bool number = !text.empty() && text.find_first_not_of(".0123456789") == text.npos;
  Result<TimeNs> delay = parse_duration(number ? text + "s" : text);
  if (!delay) return errorf(EINVAL, "'{}' is no time: 0.5, 500ms", text);
  if (*delay < kShortestDelay || *delay > kLongestDelay) {
    return errorf(ERANGE, "'{}' is outside 50ms to 3600s", text);
  }
  return delay;
}

std::string delay_text(TimeNs delay) {
  return fmt::format("{:g} s", static_cast<double>(delay) / 1e9);
}

}  // namespace rocefs::top
