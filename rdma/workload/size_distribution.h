// SizeDistribution: flow sizes of a load, as a cumulative distribution: piecewise linear, as those
// published with measurements of data centres are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "rdma/traffic/flow_plan.h"

namespace rocefs {

// Most octets of a flow: it is one message, which is in memory as a whole.
inline constexpr uint64_t kMaxLoadFlow = kMaxFlowMemory;

class SizeDistribution {
 public:
  // All flows have `size` octets.
  static SizeDistribution fixed(uint64_t size);
  // websearch, fbhadoop or alistorage. EINVAL for another name.
  static Result<SizeDistribution> named(std::string_view name);
  // Lines of a text: SIZE PERCENT, both not decreasing, the last one 100; or fractions, to 1. A
  // comment begins with #. EINVAL with the line of what is wrong.
  static Result<SizeDistribution> parse(std::string_view text);
  // Distribution of that name, or of a file. The reason of a failure names the file.
  static Result<SizeDistribution> read(const std::string& name, const std::string& directory);

  // The size below which the fraction `u` of all flows are, in octets, at least 1. 0 <= u <= 1.
  uint64_t at(double u) const;
  // In octets.
  double mean() const;
  uint64_t largest() const { return at(1); }

 private:
  struct Point {
    double size, below;  // octets; fraction of the flows that are not larger
  };
  explicit SizeDistribution(std::vector<Point> points) : points_(std::move(points)) {}

  std::vector<Point> points_;  // at least one; the last one's fraction is 1
};

}  // namespace rocefs
