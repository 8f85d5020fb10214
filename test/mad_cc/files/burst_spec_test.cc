#include "mad_cc/files/burst_spec.h"

#include <catch2/catch.hpp>
#include <cerrno>

using namespace rocefs;

TEST_CASE("burst: omitted options have their defaults") {
  Result<BurstSpec> spec = parse_burst("burst 1000\n");
  REQUIRE(spec);
  CHECK(spec->count == 1000);
  CHECK_FALSE(spec->port);
  CHECK(spec->timeout_ms == 1000);
  CHECK(spec->retries == 0);
}

TEST_CASE("burst: all options parse, in any order") {
  for (const char* text : {"burst 0x10 port=mb_1/2 timeout=50ms retries=4294967295",
                           "  burst\t16  retries=0xffffffff timeout=0.05s port=mb_1/2 \n"}) {
    Result<BurstSpec> spec = parse_burst(text);
    REQUIRE(spec);
    CHECK(spec->count == 16);
    CHECK(spec->port->text() == "mb_1/2");
    CHECK(spec->timeout_ms == 50);
    CHECK(spec->retries == 4294967295);
  }
  CHECK(parse_burst("burst 1 timeout=3600s")->timeout_ms == 3'600'000);
  CHECK(parse_burst("burst 1000000 timeout=1ms")->timeout_ms == 1);
}

TEST_CASE("burst: an invalid burst is refused with the reason") {
  struct Row {
    const char* text;
    const char* reason;
  };
  constexpr const char* kSyntax =
      "burst COUNT [port=DEVICE[/N]] [timeout=TIME] [retries=N] is wanted";
  constexpr const char* kTimeout = "whole milliseconds from 1ms to 3600s are wanted";
  const Row rows[] = {
      {"", kSyntax},
      {"burst", kSyntax},
      {"bursts 1", kSyntax},
      {"1000", kSyntax},
      {"burst x", "'x' is not a number"},
      {"burst 0", "0 is outside 1 to 1000000"},
      {"burst 1000001", "1000001 is outside 1 to 1000000"},
      {"burst -1", "'-1' is not a number"},
      {"burst 1 2", "'2' is not KEY=VALUE"},
      {"burst 1\nburst 2", "'1?burst' is not a number"},
      {"burst 1 port=mb_0/3", "port=mb_0/3: DEVICE or DEVICE/N is wanted"},
      {"burst 1 timeout=50", kTimeout},
      {"burst 1 timeout=0", kTimeout},
      {"burst 1 timeout=1.5ms", kTimeout},
      {"burst 1 timeout=3601s", kTimeout},
      {"burst 1 timeout=x", "timeout: "},
      {"burst 1 retries=4294967296", "retries: 4294967296 is outside 0 to 4294967295"},
      {"burst 1 retries=", "retries: '' is not a number"},
      {"burst 1 retries=1 retries=1", "'retries' is given twice"},
      {"burst 1 count=1", "unknown key 'count' (port, timeout, retries)"},
      {"burst 1 =", "unknown key '' (port, timeout, retries)"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    Result<BurstSpec> spec = parse_burst(row.text);
    REQUIRE_FALSE(spec);
    CHECK(spec.error().code == EINVAL);
    CHECK_THAT(spec.error().reason, Catch::Matchers::Contains(row.reason));
  }
  CHECK(parse_burst("burst 18446744073709551616").error().code == ERANGE);
}
