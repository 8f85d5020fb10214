// Numbers with units, as people echo them: 64K, 10G, 5us, 0.01. Sizes count in units of 1024, rates
// of 1000. Decimal only. One leading + and one trailing newline are allowed, nothing else; what is
// printed parses back to the same value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/time.h"

namespace rocefs {

// Bytes: a number, or one with K, M, G or T. EINVAL, ERANGE.
Result<uint64_t> parse_size(std::string_view text);
// Bits per second: a number, or one with K, M, G or T. Fractions are allowed where they make whole
// bits per second: 2.5G. EINVAL, ERANGE.
Result<uint64_t> parse_rate(std::string_view text);
// A number with ns, us, ms or s; without, nanoseconds. Fractions are allowed where they make whole
// nanoseconds: 1.5us.
Result<TimeNs> parse_duration(std::string_view text);
// 0 to 1, also as 1e-3. EINVAL.
Result<double> parse_probability(std::string_view text);

std::string format_size(uint64_t bytes);
std::string format_rate(uint64_t bits_per_second);
std::string format_duration(TimeNs duration);
std::string format_probability(double probability);

}  // namespace rocefs
