// Units at the edges of 64 bits.
#include "core/base/units.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cmath>

using namespace rocefs;

TEST_CASE("units: the longest duration parses back, and one nanosecond more is out of range") {
  for (TimeNs duration : {kNever, kNever - 1, 9'223'372'036 * kSecond}) {
    Result<TimeNs> parsed = parse_duration(format_duration(duration));
    REQUIRE(parsed);
    CHECK(*parsed == duration);
  }
  CHECK(*parse_duration("9223372036.854775807s") == kNever);
  for (std::string_view beyond : {"9223372036854775808", "9223372036.854775808s", "9223372037s"}) {
    INFO(beyond);
    REQUIRE_FALSE(parse_duration(beyond));
    CHECK(parse_duration(beyond).error().code == ERANGE);
  }
}

TEST_CASE("units: the largest size parses, and the next is out of range") {
  CHECK(*parse_size("18446744073709551615") == ~uint64_t{0});
  CHECK(*parse_size("16777215T") == uint64_t{16777215} << 40);
  for (std::string_view beyond : {"18446744073709551616", "16777216T"}) {
    REQUIRE_FALSE(parse_size(beyond));
    CHECK(parse_size(beyond).error().code == ERANGE);
  }
}

TEST_CASE("units: a probability of minus zero is 0, and is shown as 0") {
  CHECK_FALSE(std::signbit(*parse_probability("-0")));
  CHECK(format_probability(*parse_probability("-0.0")) == "0");
}

TEST_CASE("units: a number may have one plus sign, as for kstrtoull()") {
  CHECK(*parse_size("+64K\n") == 65536);
  CHECK(*parse_rate("+10G") == 10'000'000'000);
  CHECK(*parse_duration("+1.5us") == 1500);
  CHECK(*parse_probability("+0.5") == 0.5);
  for (std::string_view text : {"+", "++5", "+-5", "-+5", "+ 5", "5+"}) {
    INFO(text);
    CHECK(parse_size(text).error().code == EINVAL);
    CHECK(parse_rate(text).error().code == EINVAL);
    CHECK(parse_duration(text).error().code == EINVAL);
    CHECK(parse_probability(text).error().code == EINVAL);
  }
}

TEST_CASE("units: a rate may have a fraction that makes whole bits per second, and is exact") {
  struct Row {
    std::string_view text;
    uint64_t rate;
  };
  for (const Row& row :
       {Row{"2.5G", 2'500'000'000}, Row{"0.001K\n", 1}, Row{"+12.80T", 12'800'000'000'000},
        Row{"1.0", 1}, Row{"1.0000000000000T", 1'000'000'000'000},
        Row{"0.100000000001T", 100'000'000'001}, Row{"18446744.073709551615T", ~uint64_t{0}}}) {
    INFO(row.text);
    Result<uint64_t> parsed = parse_rate(row.text);
    REQUIRE(parsed);
    CHECK(*parsed == row.rate);
    CHECK(*parse_rate(format_rate(*parsed)) == row.rate);
  }
  for (std::string_view text : {"1.5", "0.0001K", "1.0000000000001T", ".5G", "2.G", "2.5.0G",
                                "2,5G", "2.5 G", "-2.5G", "2.5e1G", "1.", "."}) {
    INFO(text);
    REQUIRE_FALSE(parse_rate(text));
    CHECK(parse_rate(text).error().code == EINVAL);
  }
  for (std::string_view text : {"18446744.073709551616T", "18446745T", "99999999999999999999.5G"}) {
    INFO(text);
    REQUIRE_FALSE(parse_rate(text));
    CHECK(parse_rate(text).error().code == ERANGE);
  }
}
