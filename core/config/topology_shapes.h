// Topologies that the ini file describes by shape instead of cable by cable.
//
//   star        hosts h0 … around one switch sw_0
//   dumbbell    half of the hosts behind sw_0, the others behind sw_1, cables between the two
//   leaf-spine  hosts evenly behind the switches leaf_0 …, each leaf cabled to every spine_0 …
//   fat-tree    k pods of k/2 switches edge_P_0 … and k/2 agg_P_0 …, and (k/2)^2 switches core_0 …;
//               each edge switch is cabled to every agg of its pod, agg_P_I to the k/2 cores from
//               core_{I*k/2} (Al-Fares, Loukissas, Vahdat: SIGCOMM 2008). Full at k^3/4 hosts;
//               fewer are spread evenly over the edge switches
//
// Hosts are devices h0, h1, …. With nics=R a host of a leaf-spine is a machine hH with the devices
// hH_0 to hH_{R-1}, and each R leaves are a group of rails: NIC r of its hosts is at its leaf r.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/config/topology.h"

namespace rocefs {

// Cables between two layers of switches. Empty: as those of the layer below.
struct ShapeLayer {
  std::optional<uint64_t> rate_bps;
  std::optional<TimeNs> delay_ns;
};

// The keys of [topology]: kind=, hosts=N, mtu=; leaves=N, spines=N, nics=R of a leaf-spine, k=N of
// a fat-tree; buffer= of the switches; rate=, delay= of the hosts' cables; agg_rate=, agg_delay= of
// the cables between edge and aggregation switches, core_rate=, core_delay= of those above,
// cables=N between each two switches; reconverge=TIME, after which routes follow a change of such a
// cable.
struct Shape {
  std::string kind;
  std::optional<uint64_t> hosts;  // default: 2, or a full fat-tree
  uint64_t leaves = 2, spines = 2;
  std::optional<uint64_t> k, nics, cables;
  SwitchSpec hub;  // without a name
  LinkSpec cable;  // without ends
  ShapeLayer agg, core;
  uint32_t mtu = 4096;
  std::optional<TimeNs> reconverge;
};

// EINVAL for an unknown key or an invalid value.
Result<void> set_shape_key(Shape& shape, std::string_view key, std::string_view value);
// EINVAL for a shape that cannot be built: a key of another kind, more devices than kMaxDevices,
// hosts that do not divide evenly, or more links at a switch than it has ports (kMaxSwitchPorts).
Result<Topology> build_shape(const Shape& shape);

}  // namespace rocefs
