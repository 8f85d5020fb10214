// CoreDivision: the nodes of a topology in parts for packet cores, by the rules of CorePlan.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/config/topology.h"

namespace rocefs {

// Device, switch or uplink at the end of a cable, which names a port of a device.
std::string node_of_end(std::string_view end);

class CoreDivision {
 public:
  // Parts of `share` ports, the last one of each network of the rest. A device with two ports is in
  // the part of the first.
  CoreDivision(const Topology& topology, size_t share);

  // Devices, switches and uplinks, in this order.
  size_t nodes() const { return names_.size(); }
  const std::string& name(size_t node) const { return names_[node]; }
  size_t part_of(size_t node) const { return *parts_[node]; }
  // Ports of the devices of each part.
  const std::vector<size_t>& ports() const { return ports_; }
  // The part of all uplinks.
  std::optional<size_t> outside() const { return outside_; }

 private:
  // Parts of a network have adjacent numbers.
  struct Network {
    size_t ports = 0;
    size_t first = 0, count = 1;  // parts
    size_t placed = 0;            // ports of devices that have a part
    size_t ends = 0;              // of cables, at its switches
  };

  void add_node(const std::string& name, size_t ports);
  void connect(const Topology& topology);
  size_t first_of(size_t node);
  void join(size_t a, size_t b);
  void count_parts();
  std::vector<size_t> devices_in_order() const;
  void place_devices();
  void place_switches();
  bool place_by_devices(size_t hub);
  bool place_by_cables(size_t hub);
  void put(size_t node, size_t part);
  bool is_device(size_t node) const { return node < devices_; }
  Network& network_of(size_t node) { return networks_.at(first_of(node)); }

  const size_t share_, devices_, switches_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<size_t> weights_;              // ports
  std::vector<size_t> parents_;              // union-find: the first node of a network is its root
  std::vector<std::vector<size_t>> cables_;  // neighbours of each node, one for each cable
  std::vector<bool> outer_;                  // uplinks, and what they are cabled to
  std::unordered_map<size_t, Network> networks_;  // by first node
  std::vector<std::optional<size_t>> parts_;
  std::vector<size_t> ports_;
  std::vector<size_t> ends_;  // by part: ends of cables at its switches
  std::optional<size_t> outside_;
};

}  // namespace rocefs
