#include "rdma/network/core_plan.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace rocefs {
namespace {

// Nodes of a topology in sets that no cable connects (union-find).
class Networks {
 public:
  explicit Networks(const Topology& topology) {
    for (const DeviceSpec& one : topology.devices) add(one.name, one.ports.size());
    for (const SwitchSpec& one : topology.switches) add(one.name, 0);
    for (const UplinkSpec& one : topology.uplinks) add(one.name, 0);
    for (const LinkSpec& one : topology.links) join(node_of_end(one.a), node_of_end(one.b));
    // All uplinks lead to the same network.
    for (const UplinkSpec& one : topology.uplinks) join(one.name, topology.uplinks.front().name);
  }

  size_t size() const { return names_.size(); }
  const std::string& name(size_t node) const { return names_[node]; }
  size_t number(const std::string& name) const { return numbers_.at(name); }
  // The first node of a node's network.
  size_t first_of(size_t node) {
    while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
    return node;
  }
  // Ports of the network with this first node.
  size_t ports(size_t first) const { return ports_[first]; }

 private:
  void add(const std::string& name, size_t ports) {
    numbers_.emplace(name, names_.size());
    parents_.push_back(names_.size());
    names_.push_back(name);
    ports_.push_back(ports);
  }
  void join(const std::string& a, const std::string& b) {
    auto [first, second] = std::minmax({first_of(number(a)), first_of(number(b))});
    if (first == second) return;
    parents_[second] = first;
    ports_[first] += ports_[second];
  }

  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::string> names_;
  std::vector<size_t> parents_, ports_;
};

}  // namespace

std::string node_of_end(std::string_view end) {
  std::optional<PortName> name = parse_port_name(end);
  return name ? name->device : std::string(end);
}

// The largest network that is left goes to the core with the fewest ports.
CorePlan::CorePlan(const Topology& topology, size_t cores) {
  if (cores < 2) return;
  Networks networks(topology);
  std::vector<size_t> firsts;
  for (size_t i = 0; i < networks.size(); ++i) {
    if (networks.first_of(i) == i) firsts.push_back(i);
  }
  cores_ = std::clamp<size_t>(firsts.size(), 1, cores);
  if (cores_ == 1) return;
  std::stable_sort(firsts.begin(), firsts.end(),
                   [&](size_t a, size_t b) { return networks.ports(a) > networks.ports(b); });
  std::vector<size_t> loads(cores_), core_of(networks.size());
  auto assign = [&](size_t first, size_t core) {
    core_of[first] = core;
    loads[core] += networks.ports(first);
  };
  std::optional<size_t> outside;
  if (!topology.uplinks.empty()) {
    outside = networks.first_of(networks.number(topology.uplinks.front().name));
    assign(*outside, 0);
  }
  for (size_t first : firsts) {
    if (first == outside) continue;
    auto least = std::min_element(loads.begin(), loads.end()) - loads.begin();
    assign(first, static_cast<size_t>(least));
  }
  for (size_t i = 0; i < networks.size(); ++i) {
    by_node_[networks.name(i)] = core_of[networks.first_of(i)];
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
