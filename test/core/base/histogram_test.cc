// Histograms.
#include <catch2/catch.hpp>

#include "core/base/histogram.h"

using namespace rocefs;

TEST_CASE("histogram: a quantile is accurate to within one bucket") {
  Histogram histogram;
  CHECK(histogram.quantile(0.5) == 0);
  for (TimeNs i = 1; i <= 10'000; ++i) histogram.add(i);
  for (double fraction : {0.5, 0.9, 0.99, 1.0}) {
    auto exact = fraction * 10'000;
    CHECK(static_cast<double>(histogram.quantile(fraction)) >= exact * 0.99);
    CHECK(static_cast<double>(histogram.quantile(fraction)) <= exact * 1.26);
  }
  histogram.add(kNever);
  CHECK(histogram.quantile(1.0) > 0);
}
