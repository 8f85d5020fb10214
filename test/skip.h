// A test that needs another kind of machine says so by name, and ends there; test/run lists it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace rocefs::test {

// Ends the case as what it throws does behind a REQUIRE that failed, but without a failure.
[[noreturn]] inline void skip(const std::string& why) {
  std::fprintf(stderr, "SKIPPED %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(),
               why.c_str());
  SUCCEED("skipped");
  throw Catch::TestFailureException();
}

}  // namespace rocefs::test

// For tests that create an Engine.
#define NEEDS_IO_URING() \
  if (PollLoop loop; !Engine::create({}, loop)) test::skip("io_uring is forbidden here")
