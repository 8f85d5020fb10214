// Subnet: the view of a subnet manager on the emulated fabric: nodes, cables, LIDs. Built once,
// from the topology; SubnetState has what changes at run time.
//
// Subnets are the connected components of the fabric, by cables that are up or down. A channel
// adapter does not forward, so its two ports may be in two subnets. LIDs count from 1 in each. The
// manager and the administrator are at port 0 of the first switch, which has LID 1; without a
// switch they are at the first port of a channel adapter.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mad_cc/net/subnet_settings.h"

namespace rocefs {

inline constexpr uint64_t kSubnetPrefix = 0xfe80000000000000;

struct SubnetPort {
  static constexpr size_t kNoPeer = SIZE_MAX;
  bool member = false;  // of this subnet: false for a channel adapter's port that is in another
  uint16_t lid = 0;     // 0 for a switch's ports but port 0
  uint64_t guid = 0;
  uint16_t mtu = 4096;
  size_t peer = kNoPeer;  // index of the node at the other end of the cable
  uint8_t peer_port = 0;
};

struct SubnetNode {
  bool is_switch = false;
  std::string name;  // mb_0, sw_0
  uint64_t guid = 0;
  // Ports by number. [0] is a switch's management port; a channel adapter has no port 0. At most
  // 255 (kMaxSwitchPorts of core/config/topology.h).
  std::vector<SubnetPort> ports;
  uint8_t port_count() const { return static_cast<uint8_t>(ports.size() - 1); }
};

struct PerfCounters {  // 16.1.3.5 and 16.1.4.11, wide
  uint64_t symbol_errors = 0, link_recoveries = 0, link_downed = 0, rcv_errors = 0,
           rcv_remote_physical_errors = 0, rcv_switch_relay_errors = 0, xmit_discards = 0,
           xmit_constraint_errors = 0, rcv_constraint_errors = 0, local_link_integrity = 0,
           buffer_overruns = 0, vl15_dropped = 0, xmit_wait = 0;
  uint64_t xmit_data = 0, rcv_data = 0;  // in units of 4 octets
  uint64_t xmit_packets = 0, rcv_packets = 0;
  uint64_t unicast_xmit = 0, unicast_rcv = 0, multicast_xmit = 0, multicast_rcv = 0;
};

// SubnetState: the part of a subnet that changes at run time. Core thread.
class SubnetState {
 public:
  virtual ~SubnetState() = default;
  // Returns false for a channel adapter whose driver is unbound; nothing answers for it.
  virtual bool present(size_t node) const = 0;
  // Returns whether the cable at that port is up, in both directions: false without a cable, true
  // for port 0.
  virtual bool up(size_t node, uint8_t port) const = 0;
  virtual uint64_t rate_bps(size_t node, uint8_t port) const = 0;
  virtual std::string description(size_t node) const = 0;
  // Returns the counters that the tree shows.
  virtual PerfCounters counters(size_t node, uint8_t port) const = 0;
  // Clears the counters whose members are non-zero in `which`, in the tree too.
  virtual void clear_counters(size_t node, uint8_t port, const PerfCounters& which) = 0;
  // Takes both directions of the cable at that port down, or up again. Nothing without a cable.
  virtual void set_enabled(size_t node, uint8_t port, bool enabled) = 0;
  // The LID of the subnet's manager, as a channel adapter's port is to show it.
  virtual void set_manager_lid(size_t node, uint8_t port, uint16_t lid) = 0;

  SubnetSettings settings;
};

struct Subnet {
  struct End {
    size_t node = 0;
    uint8_t port = 0;
    bool operator==(const End&) const = default;
  };
  std::vector<SubnetNode> nodes;
  End manager;

  const SubnetPort& at(End end) const { return nodes[end.node].ports[end.port]; }
  uint16_t manager_lid() const { return at(manager).lid; }
  // Finds an end by LID.
  std::optional<End> find(uint16_t lid) const {
    if (lid == 0 || lid > by_lid.size()) return std::nullopt;
    return by_lid[lid - 1];
  }
  std::vector<End> by_lid;  // [0] has LID 1
};

}  // namespace rocefs
