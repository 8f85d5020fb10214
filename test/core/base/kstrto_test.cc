// kstrto compared with an independent implementation, and the text that a reason quotes.
#include "core/base/kstrto.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>

#include "core/base/rng.h"

using namespace rocefs;

namespace {

// Result of kstrtoull(text, 0), derived from strtoull: 0 or an errno.
int second_opinion(const std::string& text, uint64_t& value) {
  std::string rest = text.substr(text.starts_with('+') ? 1 : 0);
  if (rest.empty() || rest[0] < '0' || rest[0] > '9')
    return EINVAL;  // strtoull skips blanks, signs
  char* end = nullptr;
  errno = 0;
  value = std::strtoull(rest.c_str(), &end, 0);
  if (errno == ERANGE) return ERANGE;
  std::string_view behind(end);
  return behind.empty() || behind == "\n" ? 0 : EINVAL;
}

}  // namespace

TEST_CASE("kstrto: a reason quotes octets that are not UTF-8 as question marks") {
  constexpr std::string_view kAccented = "\xc3\xa9";
  const std::string marks(7, '?'), many(62, 'a');
  CHECK(quoted("\xc3\xa9 \xff\xc3\xed\xa0\x80\xc0\xaf") ==
        fmt::format("'{} {}'", kAccented, marks));
  CHECK(quoted("\xf0\x9f\x98\x80\xf4\x90\x80\x80") ==
        fmt::format("'\xf0\x9f\x98\x80{}'", marks.substr(3)));
  // A long text is cut between two characters.
  CHECK(quoted(fmt::format("{}{}", many, kAccented)) == fmt::format("'{}{}'", many, kAccented));
  CHECK(quoted(fmt::format("{}a{}", many, kAccented)) == fmt::format("'{}a…'", many));
  CHECK(quoted(fmt::format("{}aaa", many)) == fmt::format("'{}aa…'", many));
}

TEST_CASE("kstrto: kstrtou64() agrees with strtoull() on random texts") {
  Rng rng(17, "kstrto");
  constexpr std::string_view kLetters = "00112233445566778899aAfFgxX+- \n";
  int taken = 0, out_of_range = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text(rng.below(26), ' ');
    uint64_t kinds = rng.chance(0.5) ? 20 : kLetters.size();
    for (char& c : text) c = kLetters[rng.below(kinds)];
    if (rng.chance(0.3)) text.insert(0, "0x");
    if (rng.chance(0.2)) text.insert(0, "+");
    if (rng.chance(0.3)) text += '\n';
    uint64_t expected = 0;
    int code = second_opinion(text, expected);
    INFO(text);
    Result<uint64_t> value = kstrtou64(text, 0);
    REQUIRE((value ? 0 : value.error().code) == code);
    if (value) REQUIRE(*value == expected);
    taken += code == 0;
    out_of_range += code == ERANGE;
  }
  CHECK(taken > 10'000);
  CHECK(out_of_range > 10'000);
}

TEST_CASE("kstrto: an error reason is one line and quotes at most 64 characters") {
  CHECK(kstrtou64("1\n2\n", 0).error().reason == "'1?2' is not a number");
  CHECK(quoted("\x1b[31m\x7f") == "'?[31m?'");
  CHECK(quoted(std::string(65, 'x')) == "'" + std::string(64, 'x') + "…'");
}
