// FabricSubnet: one subnet of a fabric (tools/rocefs/instance/fabric_subnets.h), and what of the
// fabric its agents tell.
//
// Core thread; subnet() never changes.
#pragma once

#include <string>
#include <vector>

#include "mad_cc/net/subnet.h"
#include "rdma/network/fabric.h"

namespace rocefs {

class FabricSubnet final : public SubnetState {
 public:
  const Subnet& subnet() const { return subnet_; }

  bool present(size_t node) const override;
  bool up(size_t node, uint8_t port) const override;
  uint64_t rate_bps(size_t node, uint8_t port) const override;
  std::string description(size_t node) const override;
  // Channel adapters: ports/<n>/counters/. Switches have less to show, from links/ and
  // fabric/<switch>/ports/<n>/:
  //   xmit_packets, xmit_data  `packets` and `bytes` of the direction that leads out
  //   rcv_packets, rcv_data    the same of the one that leads in, without what it `lost`: what is
  //                            still on its way is counted
  //   xmit_discards            `dropped` of the eight queues
  //   unicast_*                as all: there is no multicast
  // and 0 for the rest, and for port 0.
  PerfCounters counters(size_t node, uint8_t port) const override;
  // The tree's counters go back to 0. A direction between two switches has one count for both of
  // its ends: clearing either end's clears that of the other.
  void clear_counters(size_t node, uint8_t port, const PerfCounters& which) override;

 private:
  friend class FabricSubnets;
  // Whose a node is: one of them.
  struct Entity {
    Device* device = nullptr;
    Switch* hub = nullptr;
  };
  struct Cable {
    const Link* out = nullptr;
    const Link* in = nullptr;
  };
  // Nothing for port 0 and where no cable is.
  Cable cable(size_t node, uint8_t port) const;

  Subnet subnet_;
  std::vector<Entity> entities_;  // one for each node
};

}  // namespace rocefs
