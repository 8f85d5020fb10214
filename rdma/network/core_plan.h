// CorePlan: which packet core runs which device, switch and uplink of a topology. Nodes that a
// cable connects are on the same core, so that no packet goes from one core to another.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/config/topology.h"

namespace rocefs {

// Device, switch or uplink at the end of a cable, which names a port of a device.
std::string node_of_end(std::string_view end);

class CorePlan {
 public:
  // All on one core.
  CorePlan() = default;
  // At most that many cores, from 1; fewer if the topology has not as many networks. Networks with
  // an uplink are on the first core. The others are divided so that cores have like numbers of
  // ports, the same in every run.
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
