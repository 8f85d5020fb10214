// EqualWays: all shortest ways between two ports at once, as a way whose hops stand for the links
// among which switches choose.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "rdma/network/fabric.h"
#include "tools/rocefs/sim/packet_train.h"

namespace rocefs {

// The fabric as it is when the object is made, with links that are down. Searches once for each
// switch that a port is cabled to, and once for each pair of them.
class EqualWays {
 public:
  explicit EqualWays(Fabric& fabric);

  // Ways that are at least as good as those that a flow can take which spreads over up to `paths`
  // of them, 1 or more: each hop has the rates of that many of its fastest links. Empty without a
  // way.
  Way between(const Port& from, const Port& to, uint64_t paths);
  uint64_t rate_bps(const Link& link) const { return cables_[link.id()].rate_bps; }

 private:
  static constexpr uint32_t kNoSwitch = UINT32_MAX;
  struct Cable {  // in one direction
    uint32_t from = kNoSwitch, to = kNoSwitch;
    uint64_t rate_bps = 0;
    TimeNs delay_ns = 0;
  };
  // Links among which switches choose: a hop with the fastest ones, as many as there are paths.
  class Layer {
   public:
    explicit Layer(uint64_t paths) : paths_(paths) {}
    void add(const Cable& cable);
    Hop hop();

   private:
    const uint64_t paths_;
    Hop hop_{0, 0, kNever};
    std::vector<uint64_t> rates_;  // of several paths
  };
  const std::vector<uint32_t>& distances_to(uint32_t last);
  const Way& trunks(uint32_t first, uint32_t last, uint64_t paths);

  std::vector<Cable> cables_;                     // by link
  std::vector<std::vector<uint32_t>> out_, in_;   // by switch: links to and from other switches
  std::vector<std::vector<uint32_t>> distances_;  // by switch; empty: not searched yet
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Way> trunks_;
  std::vector<uint64_t> seen_;  // by switch: the latest layer behind which it was
  uint64_t layers_ = 0;         // looked at
};

}  // namespace rocefs
