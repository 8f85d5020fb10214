#include "rdma/network/core_plan.h"

#include <algorithm>
#include <vector>

#include "rdma/network/core_division.h"

namespace rocefs {

CorePlan::CorePlan(const Topology& topology, size_t cores) {
  cores = std::min(cores, topology.devices.size());
  if (cores < 2) return;
  size_t ports = 0;
  for (const DeviceSpec& one : topology.devices) ports += one.ports.size();
  const CoreDivision division(topology, (ports + cores - 1) / cores);
  // A part may have come out empty: its devices have more ports than others.
  std::vector<size_t> parts;
  for (size_t i = 0; i < division.ports().size(); ++i) {
    if (division.ports()[i] > 0 || i == division.outside()) parts.push_back(i);
  }
  cores_ = std::min(cores, parts.size());
  if (cores_ < 2) return;
  std::stable_sort(parts.begin(), parts.end(), [&](size_t a, size_t b) {
    if ((a == division.outside()) != (b == division.outside())) return a == division.outside();
    return division.ports()[a] > division.ports()[b];
  });
  std::vector<size_t> loads(cores_), core_of(division.ports().size());
  for (size_t part : parts) {
    auto least = std::min_element(loads.begin(), loads.end());
    core_of[part] = static_cast<size_t>(least - loads.begin());
    *least += division.ports()[part];
  }
  for (size_t i = 0; i < division.nodes(); ++i) {
    by_node_[division.name(i)] = core_of[division.part_of(i)];
  }
}

CorePlan CorePlan::of(std::unordered_map<std::string, size_t> by_node, size_t parts) {
  CorePlan plan;
  plan.cores_ = parts;
  plan.by_node_ = std::move(by_node);
  return plan;
}

size_t CorePlan::core_of(std::string_view node) const {
  if (cores_ == 1) return 0;
  return by_node_.at(node_of_end(node));
}

}  // namespace rocefs
