#include "rdma/network/region_plan.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "rdma/network/core_division.h"

namespace rocefs {
namespace {

// Ends of cables at the switches of a region: with fewer it has too little to do in a window.
constexpr size_t kLeastEnds = 128;

}  // namespace

CorePlan plan_regions(const Topology& topology, size_t most) {
  std::unordered_map<std::string, size_t> cables, regions;
  for (const SwitchSpec& one : topology.switches) cables[one.name] = 0;
  size_t ends = 0;
  for (const LinkSpec& one : topology.links) {
    for (const std::string* end : {&one.a, &one.b}) {
      auto hub = cables.find(*end);
      if (hub == cables.end()) continue;
      ++hub->second;
      ++ends;
    }
  }
  const size_t count = std::clamp<size_t>(ends / kLeastEnds, 1, std::max<size_t>(most, 1));
  size_t before = 0, last = 0;  // cables of the switches before
  for (const SwitchSpec& one : topology.switches) {
    last = ends > 0 ? before * count / ends : 0;
    regions[one.name] = last;
    before += cables[one.name];
  }
  for (const LinkSpec& one : topology.links) {
    for (auto [end, other] : {std::pair(&one.a, &one.b), std::pair(&one.b, &one.a)}) {
      auto hub = cables.count(*other) ? regions.find(*other) : regions.end();
      if (hub != regions.end() && !cables.count(*end))
        regions.emplace(node_of_end(*end), hub->second);
    }
  }
  for (const DeviceSpec& one : topology.devices) regions.emplace(one.name, 0);
  return CorePlan::of(std::move(regions), last + 1);
}

}  // namespace rocefs
