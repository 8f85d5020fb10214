// PsnRanges and ArrivedPsns against plain sets of PSNs.
#include <catch2/catch.hpp>
#include <set>

#include "core/base/rng.h"
#include "rdma/transport/arrived_psns.h"
#include "rdma/transport/psn_ranges.h"

using namespace rocefs;

TEST_CASE("PSN ranges: a random run holds what a set of PSNs holds") {
  Rng rng(1, "ranges");
  PsnRanges ranges;
  std::set<uint64_t> plain;
  for (int step = 0; step < 5000; ++step) {
    uint64_t begin = rng.below(200), end = begin + 1 + rng.below(12);
    if (rng.chance(0.1)) {
      ranges.drop_before(begin);
      plain.erase(plain.begin(), plain.lower_bound(begin));
    } else {
      ranges.add(begin, end);
      for (uint64_t psn = begin; psn < end; ++psn) plain.insert(psn);
    }
    REQUIRE(ranges.empty() == plain.empty());
    if (plain.empty()) continue;
    uint64_t gap = *plain.begin();
    while (plain.contains(gap)) ++gap;
    REQUIRE(ranges.front().begin == *plain.begin());
    REQUIRE(ranges.front().end == gap);
    uint64_t psn = rng.below(220), until = psn + 1 + rng.below(3);
    bool all = true;
    for (uint64_t at = psn; at < until; ++at) all &= plain.contains(at);
    REQUIRE(ranges.contains(psn, until) == all);
  }
}

TEST_CASE("arrived PSNs: they stay when one far ahead makes room for more") {
  ArrivedPsns arrived;
  uint64_t turn = 5000;
  CHECK_FALSE(arrived.has(turn, turn));
  std::set<uint64_t> plain{turn + 1, turn + 1000, turn + 1023, turn + 5000, turn + 100000};
  for (uint64_t psn : plain) arrived.add(psn, turn);
  for (uint64_t psn = turn; psn < turn + 200000; ++psn)
    if (arrived.has(psn, turn) != plain.contains(psn)) FAIL(psn);
  arrived.remove(turn + 1);
  turn += 2;
  CHECK(arrived.has(turn + 998, turn));
  CHECK_FALSE(arrived.has(turn + arrived.size() - 1, turn));
}
