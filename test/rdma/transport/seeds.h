// Seeded runs, and the way to repeat one of them.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>

namespace rocefs::test {

// Number of seeds. Runs have one thread: ThreadSanitizer takes ten times as long for each, and sees
// no more in many of them than in a few.
constexpr uint64_t seeds(uint64_t count) {
#ifdef __SANITIZE_THREAD__
  return count / 10;
#else
  return count;
#endif
}

// Whether the environment names the seeds, so that totals over many runs do not apply.
inline bool replays() {
  return std::getenv("ROCEFS_SEED") != nullptr;
}

// Runs `count` seeds, or those that the environment names: one, or FROM-TO. `name` is the name of
// the case, or its beginning.
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
