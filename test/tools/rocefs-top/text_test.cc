#include <clocale>

#include "test/catch.h"
#include "tools/rocefs-top/delay.h"
#include "tools/rocefs-top/number_text.h"
#include "tools/rocefs-top/printable.h"

using namespace rocefs;
using namespace rocefs::top;

TEST_CASE("top: control characters and broken UTF-8 never reach a terminal") {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  CHECK(printable("a\x1b[31mb\x07\n\x7f", true) == "a?[31mb???");
  CHECK(printable("\xc2\x9b"
                  "31m",
                  true) == "?31m");  // CSI of one character
  CHECK(printable("\xe2\x80\xae"
                  "x",
                  true) == "?x");  // right-to-left override
  CHECK(printable("a\xff\xc3", true) == "a??");
  CHECK(printable("\xed\xa0\x80", true) == "???");  // a surrogate
  CHECK(printable("\xc0\x9b", true) == "??");       // overlong
  CHECK(printable("m\xc3\xa4nner \xe4\xb8\xad", true) == "m\xc3\xa4nner \xe4\xb8\xad");
  CHECK(printable("m\xc3\xa4", false) == "m?");
}

TEST_CASE("top: texts are cut and filled by columns, not octets") {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  CHECK(width_of("\xc3\xa4\xe4\xb8\xad"
                 "b") == 4);
  CHECK(cut("abcdef", 4) == "abc~");
  CHECK(cut("abcd", 4) == "abcd");
  CHECK(cut("\xe4\xb8\xad\xe4\xb8\xad", 3) == "\xe4\xb8\xad~");
  CHECK(cut("abc", 0).empty());
  CHECK(padded("\xc3\xa4", 3) == "\xc3\xa4  ");
  CHECK(padded("12", 4, true) == "  12");
}

TEST_CASE("top: numbers have three digits and a unit") {
  CHECK(number_text(0, Unit::kBitsPerS) == "0 b/s");
  CHECK(number_text(9.876e9, Unit::kBitsPerS) == "9.88 Gb/s");
  CHECK(number_text(1.25e9, Unit::kOctetsPerS) == "10.0 Gb/s");
  CHECK(number_text(999'999, Unit::kBitsPerS) == "1.00 Mb/s");
  CHECK(number_text(1023, Unit::kOctets) == "1023 B");
  CHECK(number_text(1536, Unit::kOctets) == "1.50 KB");
  CHECK(number_text(12e6, Unit::kOctets) == "11.4 MB");
  CHECK(number_text(9999, Unit::kCount) == "9999");
  CHECK(number_text(12'345, Unit::kCount) == "12.3K");
  CHECK(number_text(0.25, Unit::kPerSecond) == "0.25");
  CHECK(number_text(1.5e6, Unit::kPerSecond) == "1.50M");
  CHECK(number_text(99.97, Unit::kPercent) == "100%");
  CHECK(number_text(43.21, Unit::kPercent) == "43.2%");
  CHECK(number_text(1.5e6, Unit::kNanoseconds) == "1.50 ms");
  CHECK(number_text(2e9, Unit::kNanoseconds) == "2 s");
}

TEST_CASE("top: a delay is a number of seconds or a time") {
  CHECK(*parse_delay("0.5") == 500 * kMillisecond);
  CHECK(*parse_delay("200ms") == 200 * kMillisecond);
  CHECK(delay_text(1500 * kMillisecond) == "1.5 s");
  for (const char* wrong : {"", "x", "0", "0.01", "4000", "-1", "1 s"}) {
    INFO(wrong);
    CHECK_FALSE(parse_delay(wrong));
  }
}
