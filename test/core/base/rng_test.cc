// Random generators: a stream for each seed and entity.
#include <catch2/catch.hpp>
#include <map>

#include "core/base/rng.h"

using namespace rocefs;

TEST_CASE("rng: a stream depends only on its seed and its entity, on every machine") {
  Rng a(1, "link mb_0-sw_0"), again(1, "link mb_0-sw_0"), other(1, "link sw_0-mb_0"),
      seed(2, "link mb_0-sw_0");
  uint64_t first = a.next();
  CHECK(first == again.next());
  CHECK(first != other.next());
  CHECK(first != seed.next());
  CHECK(Rng(0, "").next() == 2393714812739481704u);  // kept: a change would change every trace
}

TEST_CASE("rng: chance() has the right frequency, and below() is uniform") {
  Rng rng(9, "fair");
  int hits = 0;
  std::map<uint64_t, int> faces;
  for (int i = 0; i < 60'000; ++i) {
    hits += rng.chance(0.01);
    ++faces[rng.below(6)];
  }
  // Five standard deviations of a binomial: 24 and 91.
  CHECK(std::abs(hits - 600) < 5 * 25);
  REQUIRE(faces.size() == 6);
  for (auto [face, count] : faces) CHECK(std::abs(count - 10'000) < 5 * 92);
  CHECK_FALSE(rng.chance(0));
  CHECK(rng.chance(1));
}
