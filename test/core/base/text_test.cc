// Numbers and words as people echo them.
#include <sys/prctl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/tree/caller_file.h"
#include "core/tree/knob.h"

using namespace rocefs;

namespace {

template <class T>
int code_of(const Result<T>& result) {
  return result ? 0 : result.error().code;
}

}  // namespace

TEST_CASE("kstrto: numbers parse as in lib/kstrtox.c") {
  struct Row {
    std::string_view text;
    unsigned base;
    uint64_t value;
    int code;
  };
  const Row rows[] = {{"0", 0, 0, 0},
                      {"42\n", 0, 42, 0},
                      {"+42", 0, 42, 0},
                      {"0x2A", 0, 42, 0},
                      {"0X2a", 0, 42, 0},
                      {"052", 0, 42, 0},
                      {"052", 10, 52, 0},
                      {"18446744073709551615", 0, ~uint64_t{0}, 0},
                      {"18446744073709551616", 0, 0, ERANGE},
                      {"99999999999999999999x", 0, 0, ERANGE},
                      {"", 0, 0, EINVAL},
                      {"\n", 0, 0, EINVAL},
                      {"+", 0, 0, EINVAL},
                      {"++1", 0, 0, EINVAL},
                      {"-1", 0, 0, EINVAL},
                      {" 1", 0, 0, EINVAL},
                      {"1 ", 0, 0, EINVAL},
                      {"1\n\n", 0, 0, EINVAL},
                      {"08", 0, 0, EINVAL},
                      {"0x", 0, 0, EINVAL},
                      {"0x10", 10, 0, EINVAL},
                      {"1.5", 0, 0, EINVAL}};
  for (const Row& row : rows) {
    INFO(row.text);
    Result<uint64_t> value = kstrtou64(row.text, row.base);
    CHECK(code_of(value) == row.code);
    if (value) CHECK(*value == row.value);
  }
}

TEST_CASE("kstrto: booleans parse as in kstrtobool(), words as in sysfs_match_string()") {
  for (std::string_view yes : {"1", "y", "Y\n", "on", "ON\n", "true", "enable", "1x"}) {
    INFO(yes);
    CHECK(*kstrtobool(yes) == true);
  }
  for (std::string_view no : {"0", "n", "off\n", "OF", "false", "disable"}) {
    INFO(no);
    CHECK(*kstrtobool(no) == false);
  }
  for (std::string_view bad : {"", "\n", "2", "o", " 1", "-1", "x"}) {
    INFO(bad);
    CHECK(code_of(kstrtobool(bad)) == EINVAL);
  }
  constexpr std::string_view kWords[] = {"down", "up"};
  CHECK(*match_word("up\n", kWords) == 1);
  CHECK(code_of(match_word("up\n\n", kWords)) == EINVAL);
  CHECK(code_of(match_word("u", kWords)) == EINVAL);
  CHECK(code_of(match_word("UP", kWords)) == EINVAL);
}

TEST_CASE("knobs: a decimal knob takes only decimal numbers within its range") {
  constexpr KnobRow row{"lifespan", KnobType::kDecimal, 0, 10000, "10", "", "", ""};
  CHECK(std::get<uint64_t>(*parse_knob(row, "0010\n")) == 10);
  CHECK(format_knob(row, uint64_t{10000}) == "10000");
  for (std::string_view bad : {"0x10", "10001", "-1", "", "1ms"}) {
    INFO(bad);
    CHECK(code_of(parse_knob(row, bad)) == EINVAL);
  }
  CHECK(code_of(parse_knob(row, "18446744073709551616")) == ERANGE);
}

TEST_CASE("units: sizes count by 1024, rates by 1000, times in nanoseconds") {
  CHECK(*parse_size("64K\n") == 65536);
  CHECK(*parse_size("2M") == 2 << 20);
  CHECK(*parse_rate("10G") == 10'000'000'000);
  CHECK(*parse_rate("2500M") == 2'500'000'000);
  CHECK(*parse_duration("5us") == 5000);
  CHECK(*parse_duration("1.5us") == 1500);
  CHECK(*parse_duration("7") == 7);
  CHECK(*parse_duration("0.25s") == 250'000'000);
  CHECK(*parse_probability("0.01") == 0.01);
  CHECK(*parse_probability("1e-3\n") == 0.001);
  CHECK(*parse_probability(".5") == 0.5);
  for (std::string_view bad : {"", "K", "1KB", "1 K", "-1", "0x10", "1k", "K1", "1.5"}) {
    INFO(bad);
    CHECK(code_of(parse_size(bad)) == EINVAL);
    CHECK(code_of(parse_rate(bad)) == EINVAL);
  }
  for (std::string_view bad : {"", "us", "1.us", ".5us", "1.5", "1.0001us", "-1us", "1 us", "1h"}) {
    INFO(bad);
    CHECK(code_of(parse_duration(bad)) == EINVAL);
  }
  CHECK(code_of(parse_size("1.5K")) == EINVAL);
  CHECK(code_of(parse_size("99999999T")) == ERANGE);
  CHECK(code_of(parse_duration("9999999999s")) == ERANGE);
  CHECK(code_of(parse_probability("1.01")) == EINVAL);
  CHECK(code_of(parse_probability("-0.1")) == EINVAL);
  for (std::string_view bad : {"", "nan", "inf", "1,0", "0.1x", "-", "-nan", " 1"}) {
    INFO(bad);
    CHECK(code_of(parse_probability(bad)) == EINVAL);
  }
}

TEST_CASE("units: a formatted value parses back to itself") {
  Rng rng(3, "units");
  CHECK(format_size(65536) == "64K");
  CHECK(format_size(1500) == "1500");
  CHECK(format_rate(25'000'000'000) == "25G");
  CHECK(format_duration(1500) == "1500ns");
  CHECK(format_duration(0) == "0");
  CHECK(format_probability(0.01) == "0.01");
  for (int i = 0; i < 20'000; ++i) {
    uint64_t number = rng.next() >> rng.below(64);
    REQUIRE(*parse_size(format_size(number)) == number);
    REQUIRE(*parse_rate(format_rate(number)) == number);
    auto duration = static_cast<TimeNs>(number >> 1);
    if (duration < kNever - kSecond)
      REQUIRE(*parse_duration(format_duration(duration)) == duration);
    double p = rng.uniform();
    REQUIRE(*parse_probability(format_probability(p)) == p);
  }
}

TEST_CASE("units: the parsers survive random text") {
  Rng rng(5, "noise");
  constexpr std::string_view kLetters = "0123456789.eE+-xKMGTnums \n\0'";
  for (int i = 0; i < 100'000; ++i) {
    std::string text(rng.below(12), ' ');
    for (char& c : text) c = kLetters[rng.below(kLetters.size())];
    (void)parse_size(text);
    (void)parse_rate(text);
    (void)parse_probability(text);
    (void)kstrtobool(text);
    (void)kstrtou64(text, 0);
    Result<TimeNs> duration = parse_duration(text);
    if (duration) REQUIRE(*duration >= 0);
  }
}

TEST_CASE("text: control characters in a program's name are replaced by question marks") {
  CHECK(program_name("perftest") == "perftest");
  CHECK(program_name({"ev\nAlgorithm: fake\0behind", 24}) == "ev?Algorithm: fake");
  CHECK(program_name("\x1b[2J\x7f \xc3\xa4") == "?[2J? \xc3\xa4");
  CHECK(program_name("").empty());
  char before[16] = {};
  REQUIRE(::prctl(PR_GET_NAME, before) == 0);
  REQUIRE(::prctl(PR_SET_NAME, "ev\nBIOS: fake") == 0);
  CHECK(comm_of(::getpid()) == "ev?BIOS: fake");
  ::prctl(PR_SET_NAME, before);
  CHECK(comm_of(-1).empty());
}
