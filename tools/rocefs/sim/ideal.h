// IdealTimes: flow completion times of flows that are alone in the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"
#include "tools/rocefs/sim/packet_train.h"

namespace rocefs {

// The fabric as it is when the object is made: before the engine starts, or on its thread. A flow's
// time takes as long to find as its path is long.
class IdealTimes {
 public:
  // `fabric` outlives the object.
  explicit IdealTimes(Fabric& fabric);

  // Time from the first octet sent to the acknowledgement of the last one, in nanoseconds: all
  // packets in a row over the shortest path, each link at its full rate, and the way back of the
  // acknowledgement (for a READ the way of the request). EINVAL without a path between the ends.
  Result<double> fct_ns(const FlowSpec& flow);
  // Rate of a port's cable; nothing if there is no such port, or no cable.
  std::optional<uint64_t> rate_bps(std::string_view port) const;

 private:
  Way way_between(const Port* from, const Port* to);

  Fabric& fabric_;
  std::vector<Hop> edges_;  // by link
};

}  // namespace rocefs
