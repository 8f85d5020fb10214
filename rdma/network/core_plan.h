// CorePlan: which packet core runs which device, switch and uplink of a topology.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/config/topology.h"

namespace rocefs {

class CorePlan {
 public:
  // All on one core.
  CorePlan() = default;
  // At most that many cores, from 1, and no more than devices. The share of a core is the number of
  // ports of devices divided by that of cores, rounded up.
  //
  // Networks, which cables connect, of at most a share stay whole. A larger one is divided into
  // parts of a share and the rest: its devices, switch by switch. A switch is in the part of most
  // of its devices; one without devices where most of its cables lead, so that parts have like
  // numbers of ends of cables at switches.
  //
  // Networks with uplinks count as one. Uplinks, and what they are cabled to, are in its first
  // part, on the first core. Then the largest part goes to the core with the fewest ports.
  CorePlan(const Topology& topology, size_t cores);
  // Another division: numbers below `parts`, by device, switch and uplink.
  static CorePlan of(std::unordered_map<std::string, size_t> by_node, size_t parts);

  size_t cores() const { return cores_; }
  // Core of a device, switch, uplink or port of the topology.
  size_t core_of(std::string_view node) const;

 private:
  size_t cores_ = 1;
  std::unordered_map<std::string, size_t> by_node_;  // empty with one core
};

}  // namespace rocefs
