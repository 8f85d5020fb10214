#include "core/base/units.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/kstrto.h"

namespace rocefs {
namespace {

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};
// Largest first.
constexpr std::array<Unit, 4> kSizes{{{"T", uint64_t{1} << 40},
                                      {"G", uint64_t{1} << 30},
                                      {"M", uint64_t{1} << 20},
                                      {"K", uint64_t{1} << 10}}};
constexpr std::array<Unit, 4> kRates{
    {{"T", 1'000'000'000'000}, {"G", 1'000'000'000}, {"M", 1'000'000}, {"K", 1'000}}};
constexpr std::array<Unit, 4> kDurations{
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};

// Removes the newline and the plus that kstrtoull() allows around a number.
std::string_view bare(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] >= '0' && text[1] <= '9') text.remove_prefix(1);
  return text;
}

// Removes the unit from the end of `text`; 1 if there is none.
template <size_t N>
uint64_t take_unit(std::string_view& text, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    text.remove_suffix(unit.suffix.size());
    return unit.factor;
  }
  return 1;
}

bool digits_only(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

Error too_large(std::string_view text) {
  return errorf(ERANGE, "{} is too large", quoted(text));
}

Result<uint64_t> parse_whole(std::string_view text, const std::array<Unit, 4>& units,
                             std::string_view example) {
  std::string_view rest = bare(text);
  uint64_t factor = take_unit(rest, units);
  if (!digits_only(rest)) return errorf(EINVAL, "{}: {} is wanted", quoted(text), example);
  Result<uint64_t> number = kstrtou64(rest, 10);
  if (!number || *number > std::numeric_limits<uint64_t>::max() / factor) return too_large(text);
  return *number * factor;
}

struct Wanted {
  std::string_view example, least;
};
// Parses a fraction that makes a whole number of the smallest unit. Digit by digit: no value is
// rounded.
Result<uint64_t> parse_decimal(std::string_view text, const std::array<Unit, 4>& units,
                               uint64_t max, const Wanted& wanted) {
  std::string_view rest = bare(text);
  uint64_t factor = take_unit(rest, units);
  size_t point = std::min(rest.find('.'), rest.size());
  std::string_view whole = rest.substr(0, point);
  std::string_view fraction = rest.substr(std::min(point + 1, rest.size()));
  bool malformed = !digits_only(whole) || (point < rest.size() && !digits_only(fraction));
  if (malformed) return errorf(EINVAL, "{}: {} is wanted", quoted(text), wanted.example);
  Result<uint64_t> number = kstrtou64(whole, 10);
  if (!number || *number > max / factor) return too_large(text);
  uint64_t value = *number * factor;
  for (char c : fraction) {
    if (factor % 10 != 0) {
      if (c == '0') continue;
      return errorf(EINVAL, "{} is not a whole number of {}", quoted(text), wanted.least);
    }
    factor /= 10;
    uint64_t more = static_cast<uint64_t>(c - '0') * factor;
    if (more > max - value) return too_large(text);
    value += more;
  }
  return value;
}

std::string format_whole(uint64_t value, const std::array<Unit, 4>& units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return fmt::format("{}{}", value / unit.factor, unit.suffix);
    }
  }
  return fmt::format("{}", value);
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  return parse_whole(text, kSizes, "a size such as 1500 or 64K");
}
Result<uint64_t> parse_rate(std::string_view text) {
  return parse_decimal(text, kRates, std::numeric_limits<uint64_t>::max(),
                       {"a rate such as 10G or 2.5G", "bits per second"});
}

Result<TimeNs> parse_duration(std::string_view text) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<TimeNs>::max());
  Result<uint64_t> value =
      parse_decimal(text, kDurations, kMax, {"a time such as 5us", "nanoseconds"});
  if (!value) return value.error();
  return static_cast<TimeNs>(*value);
}

Result<double> parse_probability(std::string_view text) {
  std::string_view rest = bare(text);
  std::string_view digits = rest.substr(rest.starts_with('-') ? 1 : 0);
  double value = 0;
  auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  bool number = !digits.empty() && (digits[0] == '.' || digits_only(digits.substr(0, 1)));
  if (!number || end != rest.data() + rest.size() || code == std::errc::invalid_argument) {
    return errorf(EINVAL, "{}: a probability from 0 to 1 is wanted", quoted(text));
  }
  if (code != std::errc() || !(value >= 0 && value <= 1)) {
    return errorf(EINVAL, "{} is outside 0 to 1", quoted(text));
  }
  return std::abs(value);  // -0 is 0
}

std::string format_size(uint64_t bytes) {
  return format_whole(bytes, kSizes);
}
std::string format_rate(uint64_t bits_per_second) {
  return format_whole(bits_per_second, kRates);
}

std::string format_duration(TimeNs duration) {
  auto value = static_cast<uint64_t>(duration);
  for (size_t i = kDurations.size(); i-- > 0;) {
    const Unit& unit = kDurations[i];
    if (value != 0 && value % unit.factor == 0) {
      return fmt::format("{}{}", value / unit.factor, unit.suffix);
    }
  }
  return "0";
}

std::string format_probability(double probability) {
  std::array<char, 32> text;
  auto result = std::to_chars(text.data(), text.data() + text.size(), probability);
  return std::string(text.data(), result.ptr);
}

}  // namespace rocefs
