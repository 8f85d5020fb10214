// Topologies that the ini file describes by shape instead of cable by cable.
//
//   star        hosts h0 … around one switch sw_0
//   dumbbell    half of the hosts behind sw_0, the others behind sw_1, one cable between the two
//   leaf-spine  hosts evenly behind the switches leaf_0 …, each leaf cabled to every spine_0 …
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/config/topology.h"

namespace rocefs {

// The keys of [topology]: kind=star|dumbbell|leaf-spine, hosts=N, leaves=N, spines=N, mtu=; rate=,
// delay=, buffer= of the hosts' cables; core_rate=, core_delay= of the cables between switches, by
// default as the hosts'.
struct Shape {
  std::string kind;
  uint64_t hosts = 2, leaves = 2, spines = 2;
  LinkSpec cable;  // without ends
  std::optional<uint64_t> core_rate_bps;
  std::optional<TimeNs> core_delay_ns;
  uint32_t mtu = 4096;
};

// EINVAL for an unknown key or an invalid value.
Result<void> set_shape_key(Shape& shape, std::string_view key, std::string_view value);
// EINVAL for a shape that cannot be built: more hosts than addresses, hosts that do not divide
// evenly, or more links at a switch than it has ports (kMaxSwitchPorts).
Result<Topology> build_shape(const Shape& shape);

}  // namespace rocefs
