// IdealTimes: flow completion times of flows that are alone in the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"

namespace rocefs {

// The fabric as it is when the object is made: before the engine starts, or on its thread. A flow's
// time then takes as long to find as its path is long; the first flow from behind a switch searches
// the switches once.
class IdealTimes {
 public:
  IdealTimes(Fabric& fabric, const Topology& topology);

  // Time from the first octet sent to the acknowledgement of the last one, in nanoseconds: all
  // packets in a row over the slowest link of the shortest path at its full rate, one packet over
  // each other link, propagation, and the way back of the acknowledgement (for a READ the way of
  // the request). EINVAL without a path between the ends.
  Result<double> fct_ns(const FlowSpec& flow);
  // Rate of a port's cable; nothing if there is no such port, or no cable.
  std::optional<uint64_t> rate_bps(std::string_view port) const;

 private:
  struct Edge {
    uint32_t to = 0;
    uint64_t rate_bps = 0;
    TimeNs delay_ns = 0;
  };
  struct Node {
    Port* port = nullptr;  // null: a switch, or an uplink
    std::vector<Edge> edges;
  };
  using Path = std::vector<Edge>;
  // For each node the edge by which a search from one node came to it, and where from.
  struct Arrival {
    uint32_t from = kNone;
    uint32_t edge = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  std::optional<uint32_t> find(std::string_view port) const;
  const std::vector<Arrival>& search(uint32_t from);
  Path path_between(uint32_t from, uint32_t to);

  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> places_;             // by name, as in the topology
  std::unordered_map<uint32_t, std::vector<Arrival>> searches_;  // by the node they began at
};

}  // namespace rocefs
