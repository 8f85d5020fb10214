// Flow sizes of loads.
#include "rdma/workload/size_distribution.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/rng.h"

using namespace rocefs;

TEST_CASE("sizes: the published distributions have their means and quantiles") {
  // The means are those of the piecewise linear curves: sums of (p2 - p1) (s1 + s2) / 2.
  struct Expected {
    const char* name;
    double mean;
    uint64_t median;
  } expected[] = {
      {"websearch", 1'711'250, 73'077}, {"fbhadoop", 120'421, 700}, {"alistorage", 40'870, 6'340}};
  for (const Expected& one : expected) {
    INFO(one.name);
    auto sizes = SizeDistribution::named(one.name);
    REQUIRE(sizes);
    CHECK(sizes->mean() == Approx(one.mean).epsilon(0.001));
    CHECK(sizes->at(0.5) == Approx(static_cast<double>(one.median)).epsilon(0.001));
  }
}

TEST_CASE("sizes: draws have the mean and the range of the distribution") {
  auto sizes = SizeDistribution::named("websearch");
  REQUIRE(sizes);
  Rng rng(1, "sizes");
  double sum = 0;
  uint64_t largest = 0, smallest = UINT64_MAX;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    uint64_t size = sizes->at(rng.uniform());
    sum += static_cast<double>(size);
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
  }
  // The standard deviation is 3.97 MB: that of the mean of 200,000 is 8.9 kB, half a percent.
  CHECK(sum / kDraws == Approx(sizes->mean()).epsilon(0.02));
  CHECK(largest <= sizes->largest());
  CHECK(smallest >= 1);
}

TEST_CASE("sizes: a file's distribution may be in percent or in fractions") {
  auto percent =
      SizeDistribution::parse("# two kinds\n1000 0\n1000 25\n\n9000 25\n9000 100 # rest\n");
  auto fraction = SizeDistribution::parse("1000 0\n1000 0.25\n9000 0.25\n9000 1\n");
  REQUIRE(percent);
  REQUIRE(fraction);
  for (const auto* sizes : {&*percent, &*fraction}) {
    CHECK(sizes->mean() == 7000);
    CHECK(sizes->at(0) == 1000);
    CHECK(sizes->at(0.249) == 1000);
    CHECK(sizes->at(0.251) == 9000);
    CHECK(sizes->at(0.999) == 9000);
  }
  CHECK(SizeDistribution::fixed(64).at(0.3) == 64);
  CHECK(SizeDistribution::parse("1 0\n2.5 1\n")->largest() == 3);
  CHECK(
      SizeDistribution::parse("\xEF\xBB\xBF"
                              "7 100\n"));
  CHECK(SizeDistribution::fixed(64).mean() == 64);
}

TEST_CASE("sizes: an invalid distribution is refused with its line") {
  auto why = [](const char* text) {
    auto sizes = SizeDistribution::parse(text);
    return sizes ? std::string() : sizes.error().reason;
  };
  CHECK(why("") == "the distribution is empty");
  CHECK(why("10 5\n20\n") == "line 2: SIZE PERCENT is wanted");
  CHECK(why("10 5 7\n") == "line 1: SIZE PERCENT is wanted");
  CHECK(why("10 nan\n") == "line 1: SIZE PERCENT is wanted");
  CHECK(why("10 50\n5 100\n") == "line 2: the numbers decrease");
  CHECK(why("10 50\n20 40\n") == "line 2: the numbers decrease");
  CHECK(why("10 50\n20 90\n") == "the last percentage is not 100");
  CHECK(why("-1 50\n20 100\n") == "line 1: a flow has 0 to 1073741824 octets");
  CHECK(why("0 100\n") == "all flows are empty");
  CHECK(SizeDistribution::named("web").error().reason ==
        "no distribution web (websearch, fbhadoop, alistorage, or a file)");
}
