// Runs that differ by their seed, and how one of them is repeated.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>

namespace rocefs::test {

// How many of so many. Such runs have one thread: ThreadSanitizer takes ten times as long for each,
// and sees no more in many of them than in a few.
constexpr uint64_t seeds(uint64_t count) {
#ifdef __SANITIZE_THREAD__
  return count / 10;
#else
  return count;
#endif
}

// Whether the environment names the seeds: what holds for many runs need not hold for these.
inline bool replays() {
  return std::getenv("ROCEFS_SEED") != nullptr;
}

// As many seeds as are given, or those that the environment names: one, or FROM-TO. `name` is that
// of the case, or how it begins.
template <class Run>
void for_seeds(uint64_t count, const char* name, Run run) {
  uint64_t from = 1, to = count;
  if (const char* given = std::getenv("ROCEFS_SEED")) {
    char* end = nullptr;
    from = to = std::strtoull(given, &end, 0);
    if (*end == '-') to = std::strtoull(end + 1, nullptr, 0);
  }
  for (uint64_t seed = from; seed <= to; ++seed) {
    INFO("replay with: ROCEFS_SEED=" << seed << " build/test/rdma_test '" << name << "*'");
    run(seed);
  }
}

}  // namespace rocefs::test
