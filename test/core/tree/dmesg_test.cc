// The log that the tree shows as dmesg.
#include <catch2/catch.hpp>

#include "core/tree/dmesg.h"
#include "core/tree/function_file.h"
#include "core/tree/tree.h"

using namespace rocefs;

TEST_CASE("dmesg: lines look like the kernel's, the oldest are dropped, none can be forged") {
  Dmesg dmesg(100);
  dmesg.log(LogLevel::kInfo, 5 * kSecond + 123456789, "hello");
  CHECK(dmesg.text() == "[    5.123456] hello\n");
  dmesg.log(LogLevel::kInfo, 0, "a\n[    0.000000] forged\x1b[31m");
  CHECK(dmesg.text().find("\n[    0.000000] a?[    0.000000] forged?[31m\n") != std::string::npos);
  for (int i = 0; i < 50; ++i) dmesg.log(LogLevel::kInfo, i, "line " + std::to_string(i));
  CHECK(dmesg.text().size() <= 100);
  CHECK(dmesg.text().find("line 49") != std::string::npos);
  CHECK(dmesg.text().find("hello") == std::string::npos);
}
