// rocefs_pcc_test.h, as a program in C uses it.
#include <catch2/catch.hpp>

extern "C" int harness_program();

TEST_CASE("pcc unit test: an author's test in C sees what its algorithm decides") {
  CHECK(harness_program() == 0);
}
