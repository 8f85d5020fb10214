#include "rdma/network/core_division.h"

#include <algorithm>
#include <tuple>

namespace rocefs {

std::string node_of_end(std::string_view end) {
  std::optional<PortName> name = parse_port_name(end);
  return name ? name->device : std::string(end);
}

CoreDivision::CoreDivision(const Topology& topology, size_t share)
    : share_(share), devices_(topology.devices.size()), switches_(topology.switches.size()) {
  for (const DeviceSpec& one : topology.devices) add_node(one.name, one.ports.size());
  for (const SwitchSpec& one : topology.switches) add_node(one.name, 0);
  for (const UplinkSpec& one : topology.uplinks) add_node(one.name, 0);
  connect(topology);
  count_parts();
  place_devices();
  place_switches();
}

void CoreDivision::add_node(const std::string& name, size_t ports) {
  numbers_.emplace(name, names_.size());
  parents_.push_back(names_.size());
  names_.push_back(name);
  weights_.push_back(ports);
}

size_t CoreDivision::first_of(size_t node) {
  while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
  return node;
}

void CoreDivision::join(size_t a, size_t b) {
  auto [first, second] = std::minmax({first_of(a), first_of(b)});
  parents_[second] = first;
}

void CoreDivision::connect(const Topology& topology) {
  cables_.resize(nodes());
  outer_.resize(nodes());
  const size_t first_uplink = devices_ + switches_;
  for (const LinkSpec& one : topology.links) {
    const size_t a = numbers_.at(node_of_end(one.a)), b = numbers_.at(node_of_end(one.b));
    cables_[a].push_back(b);
    cables_[b].push_back(a);
    join(a, b);
    if (std::max(a, b) >= first_uplink) outer_[a] = outer_[b] = true;
  }
  for (size_t i = first_uplink; i < nodes(); ++i) {
    outer_[i] = true;
    join(i, first_uplink);
  }
}

void CoreDivision::count_parts() {
  parts_.resize(nodes());
  for (size_t i = 0; i < nodes(); ++i) {
    Network& network = networks_[first_of(i)];
    network.ports += weights_[i];
    if (i >= devices_ && i < devices_ + switches_) network.ends += cables_[i].size();
  }
  for (size_t i = 0; i < nodes(); ++i) {
    if (first_of(i) != i) continue;
    Network& network = network_of(i);
    network.first = ports_.size();
    network.count = std::max<size_t>((network.ports + share_ - 1) / share_, 1);
    ports_.resize(ports_.size() + network.count);
  }
  ends_.resize(ports_.size());
  const size_t first_uplink = devices_ + switches_;
  if (first_uplink < nodes()) outside_ = network_of(first_uplink).first;
}

void CoreDivision::put(size_t node, size_t part) {
  parts_[node] = part;
  ports_[part] += weights_[node];
  if (!is_device(node)) ends_[part] += cables_[node].size();
}

// Devices by the switch to which their first cable leads, those of switches with an uplink first;
// then those whose cable leads to none.
std::vector<size_t> CoreDivision::devices_in_order() const {
  std::vector<size_t> order;
  for (size_t i = 0; i < devices_; ++i) order.push_back(i);
  auto rank = [&](size_t device) {
    const size_t far = cables_[device].empty() ? nodes() : cables_[device].front();
    const bool at_switch = far >= devices_ && far < devices_ + switches_;
    const bool outer = outer_[device] || (at_switch && outer_[far]);
    return std::tuple(!outer, at_switch ? far : nodes());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return order;
}

void CoreDivision::place_devices() {
  for (size_t device : devices_in_order()) {
    Network& network = network_of(device);
    const size_t run = network.placed / share_;
    network.placed += weights_[device];
    put(device, network.first + (outer_[device] ? 0 : run));
  }
}

// Passes over the switches: one whose neighbours have no part yet waits for them.
void CoreDivision::place_switches() {
  for (size_t i = devices_ + switches_; i < nodes(); ++i) put(i, *outside_);
  std::vector<size_t> left;
  for (size_t hub = devices_; hub < devices_ + switches_; ++hub) {
    if (!place_by_devices(hub)) left.push_back(hub);
  }
  for (size_t before = 0; before != left.size();) {
    before = left.size();
    std::erase_if(left, [this](size_t hub) { return place_by_cables(hub); });
  }
  for (size_t hub : left) put(hub, network_of(hub).first);
}

bool CoreDivision::place_by_devices(size_t hub) {
  const Network& network = network_of(hub);
  if (outer_[hub]) {
    put(hub, network.first);
    return true;
  }
  std::vector<size_t> ports(network.count);
  for (size_t far : cables_[hub]) {
    if (is_device(far)) ++ports[*parts_[far] - network.first];
  }
  auto most = std::max_element(ports.begin(), ports.end());
  if (*most == 0) return false;
  put(hub, network.first + static_cast<size_t>(most - ports.begin()));
  return true;
}

bool CoreDivision::place_by_cables(size_t hub) {
  const Network& network = network_of(hub);
  std::vector<size_t> cables(network.count);
  for (size_t far : cables_[hub]) {
    if (parts_[far]) ++cables[*parts_[far] - network.first];
  }
  if (std::count(cables.begin(), cables.end(), 0u) == static_cast<long>(network.count))
    return false;
  const size_t even = (network.ends + network.count - 1) / network.count;
  // Worse if the part has its ends already, then the fewer cables lead to it, the more ends it has.
  auto worse = [&](size_t part) {
    const size_t ends = ends_[network.first + part];
    return std::tuple(ends + cables_[hub].size() > even, network.ends - cables[part], ends);
  };
  size_t best = 0;
  for (size_t part = 1; part < network.count; ++part) {
    if (worse(part) < worse(best)) best = part;
  }
  put(hub, network.first + best);
  return true;
}

}  // namespace rocefs
