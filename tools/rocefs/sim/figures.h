// Figures: mean, percentiles and maximum of a histogram.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace rocefs {

// In this order.
inline constexpr const char* kFigureNames[] = {"mean", "p50", "p95", "p99", "p99.9", "max"};
inline constexpr double kFigureQuantiles[] = {0.5, 0.95, 0.99, 0.999};
inline constexpr size_t kP99Figure = 3, kMaxFigure = 5;
using Figures = std::array<double, std::size(kFigureNames)>;

inline double six_digits(double value) {
  return std::round(value * 1e6) / 1e6;
}

template <class Histogram>
Figures figures_of(const Histogram& values, double divisor = 1) {
  Figures figures{};
  figures[0] = six_digits(values.mean() / divisor);
  for (size_t i = 0; i < std::size(kFigureQuantiles); ++i) {
    figures[i + 1] = static_cast<double>(values.quantile(kFigureQuantiles[i])) / divisor;
  }
  figures.back() = static_cast<double>(values.max()) / divisor;
  return figures;
}

}  // namespace rocefs
