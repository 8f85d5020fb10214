// Skips a test that needs another kind of machine, and prints its name; test/run lists it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace rocefs::test {

// Ends the case like the exception of a failed REQUIRE, but without a failure.
[[noreturn]] inline void skip(const std::string& why) {
  std::fprintf(stderr, "SKIPPED %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(),
               why.c_str());
  SUCCEED("skipped");
  throw Catch::TestFailureException();
}

}  // namespace rocefs::test
