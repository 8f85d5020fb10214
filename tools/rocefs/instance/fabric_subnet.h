// FabricSubnet: one subnet of a fabric (tools/rocefs/instance/fabric_subnets.h), and the state of
// the fabric that its agents report.
//
// Core thread; subnet() never changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mad_cc/net/subnet.h"
#include "rdma/network/fabric.h"

namespace rocefs {

class FabricSubnet final : public SubnetState {
 public:
  const Subnet& subnet() const { return subnet_; }
  // `set_link` takes a direction of a cable up or down, as a store to its knob would.
  using SetLink = std::function<void(const Link& link, bool up)>;
  void on_set_link(SetLink set_link) { set_link_ = std::move(set_link); }

  bool present(size_t node) const override;
  bool up(size_t node, uint8_t port) const override;
  uint64_t rate_bps(size_t node, uint8_t port) const override;
  std::string description(size_t node) const override;
  // Channel adapters: ports/<n>/counters/. Switches: from links/ and fabric/<switch>/ports/<n>/,
  //   xmit_packets, xmit_data  `packets` and `bytes` of the outgoing direction
  //   rcv_packets, rcv_data    the same of the incoming one without `lost`; packets in flight are
  //                            counted
  //   xmit_discards            `dropped` of the eight queues
  //   link_downed              `link_downed` of the port
  //   unicast_*                as all: there is no multicast
  // other counters are 0, and all of port 0.
  PerfCounters counters(size_t node, uint8_t port) const override;
  // Resets the tree's counters to 0. A direction between two switches has one count for both of its
  // ends: clearing one end clears the other.
  void clear_counters(size_t node, uint8_t port, const PerfCounters& which) override;
  void set_enabled(size_t node, uint8_t port, bool enabled) override;
  void set_manager_lid(size_t node, uint8_t port, uint16_t lid) override;

 private:
  friend class FabricSubnets;
  // The device or the switch behind a node: one of them is null.
  struct Hardware {
    Device* device = nullptr;
    Switch* hub = nullptr;
  };
  struct Cable {
    const Link* out = nullptr;
    const Link* in = nullptr;
  };
  // Both links of the port's cable; null for port 0 and without a cable.
  Cable cable(size_t node, uint8_t port) const;

  Subnet subnet_;
  std::vector<Hardware> hardware_;  // by node
  SetLink set_link_;
};

}  // namespace rocefs
