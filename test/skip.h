// A test that cannot run here says so by name; test/run lists it.
#pragma once

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace rocefs::test {

inline void skip(const std::string& why) {
  std::fprintf(stderr, "SKIPPED %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(),
               why.c_str());
  SUCCEED("skipped");
}

}  // namespace rocefs::test

// For tests that create an Engine.
#define NEEDS_IO_URING() \
  if (PollLoop loop; !Engine::create({}, loop)) return test::skip("io_uring is forbidden here")
