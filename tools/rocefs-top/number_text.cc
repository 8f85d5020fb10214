#include "tools/rocefs-top/number_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace rocefs::top {
namespace {

// Three digits, whatever the size: 1.23, 12.3, 123. What rounds up to the next size belongs to it.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string scaled(double value, double step, const char* const* prefixes, size_t count,
                   const char* blank, const char* unit) {
  size_t i = 0;
  for (; i + 1 < count && std::abs(value) >= step - 0.5; ++i) value /= step;
  const bool whole = i == 0 && value == std::floor(value);
  const std::string digits = whole ? fmt::format("{:.0f}", value) : three_digits(value);
  const std::string name = std::string(prefixes[i]) + unit;
  return name.empty() ? digits : digits + blank + name;
}

constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
constexpr const char* kTimes[] = {"ns", "us", "ms"};

}  // namespace

std::string number_text(double value, Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return {};
    case Unit::kCount:
      if (value < 10'000) return fmt::format("{:.0f}", value);
      [[fallthrough]];
    case Unit::kPerSecond:
      return scaled(value, 1000, kPrefixes, std::size(kPrefixes), "", "");
    case Unit::kOctets:
      return scaled(value, 1024, kPrefixes, std::size(kPrefixes), " ", "B");
    case Unit::kOctetsPerS:
      return number_text(value * 8, Unit::kBitsPerS);
    case Unit::kBitsPerS:
      return scaled(value, 1000, kPrefixes, std::size(kPrefixes), " ", "b/s");
    case Unit::kPercent:
      return value < 99.95 ? fmt::format("{:.1f}%", value) : fmt::format("{:.0f}%", value);
    case Unit::kNanoseconds:
      if (value >= 999.5e6) return scaled(value / 1e9, 1000, kPrefixes, 1, " ", "s");
      return scaled(value, 1000, kTimes, std::size(kTimes), " ", "");
  }
  return {};
}

}  // namespace rocefs::top
