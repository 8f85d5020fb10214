// IdealTimes: flow completion times of flows that are alone in the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/result.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"
#include "tools/rocefs/sim/equal_ways.h"

namespace rocefs {

// The fabric as it is when the object is made: before the engine starts, or on its thread. A flow's
// time takes as long to find as its path is long.
class IdealTimes {
 public:
  // `fabric` outlives the object.
  explicit IdealTimes(Fabric& fabric);

  // Time from the first octet sent to the acknowledgement of the last one, in nanoseconds: all
  // packets in a row over the shortest paths, each link at its full rate, and the way back of the
  // acknowledgement (for a READ the way of the request). Of a queue pair's READs and atomics no
  // more are in flight than it may have; other limits are left out. A flow has as many paths as
  // queue pairs, times the source ports among which its sender sprays; of the links between two
  // switches that are equally near it has that many of the fastest. EINVAL without a path between
  // the ends.
  Result<double> fct_ns(const FlowSpec& flow);
  // Rate of a port's cable; nothing if there is no such port, or no cable.
  std::optional<uint64_t> rate_bps(std::string_view port) const;

 private:
  Fabric& fabric_;
  EqualWays ways_;
  std::unordered_map<const Device*, uint64_t> spraying_;  // source ports, of those that spray
};

}  // namespace rocefs
