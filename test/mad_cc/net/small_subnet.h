// Subnet of two switches and three channel adapters, one of them with two ports, and a state that
// tests change:
//
//   ca_0/1 -- sw_0/1   sw_0/3 -- sw_1/3   sw_1/1 -- ca_1/1
//   ca_2/1 -- sw_0/2                      sw_1/2 -- ca_2/2
//
// LIDs: sw_0 1, sw_1 2, ca_0 3, ca_1 4, ca_2 5 and 6. sw_0 has a fourth port with no cable.
#pragma once

#include <set>
#include <utility>

#include "mad_cc/net/subnet.h"

namespace rocefs {

enum SmallNode : size_t { kSw0, kSw1, kCa0, kCa1, kCa2 };

inline Subnet small_subnet() {
  Subnet subnet;
  auto add = [&](const char* name, bool is_switch, size_t ports) {
    SubnetNode node;
    node.name = name;
    node.is_switch = is_switch;
    node.guid = 0x1000 * (subnet.nodes.size() + 1);
    node.ports.resize(ports + 1);
    for (size_t p = is_switch ? 0 : 1; p <= ports; ++p) {
      node.ports[p].member = true;
      node.ports[p].guid = node.guid + p;
      if (is_switch && p > 0) continue;
      subnet.by_lid.push_back({subnet.nodes.size(), static_cast<uint8_t>(p)});
      node.ports[p].lid = static_cast<uint16_t>(subnet.by_lid.size());
    }
    subnet.nodes.push_back(node);
  };
  add("sw_0", true, 4);
  add("sw_1", true, 3);
  add("ca_0", false, 1);
  add("ca_1", false, 1);
  add("ca_2", false, 2);
  auto cable = [&](size_t a, uint8_t port, size_t b, uint8_t other) {
    subnet.nodes[a].ports[port].peer = b;
    subnet.nodes[a].ports[port].peer_port = other;
    subnet.nodes[b].ports[other].peer = a;
    subnet.nodes[b].ports[other].peer_port = port;
  };
  cable(kSw0, 1, kCa0, 1);
  cable(kSw0, 2, kCa2, 1);
  cable(kSw0, 3, kSw1, 3);
  cable(kSw1, 1, kCa1, 1);
  cable(kSw1, 2, kCa2, 2);
  subnet.manager = {kSw0, 0};
  return subnet;
}

class SmallState final : public SubnetState {
 public:
  explicit SmallState(const Subnet& subnet) : subnet_(subnet) {}
  bool present(size_t node) const override { return absent.count(node) == 0; }
  bool up(size_t node, uint8_t port) const override {
    if (subnet_.nodes[node].is_switch && port == 0) return true;
    const SubnetPort& at = subnet_.nodes[node].ports[port];
    return at.peer != SubnetPort::kNoPeer && down.count({node, port}) == 0 &&
           down.count({at.peer, at.peer_port}) == 0;
  }
  uint64_t rate_bps(size_t node, uint8_t port) const override {
    for (const auto& [at, rate] : rates) {
      if (at == std::pair{node, port}) return rate;
    }
    return 100'000'000'000;
  }
  std::string description(size_t node) const override { return subnet_.nodes[node].name; }
  PerfCounters counters(size_t, uint8_t) const override { return {}; }
  void clear_counters(size_t, uint8_t, const PerfCounters&) override {}
  void set_enabled(size_t, uint8_t, bool) override {}
  void set_manager_lid(size_t, uint8_t, uint16_t) override {}

  std::set<size_t> absent;
  std::set<std::pair<size_t, uint8_t>> down;  // either end of a cable
  std::vector<std::pair<std::pair<size_t, uint8_t>, uint64_t>> rates;

 private:
  const Subnet& subnet_;
};

}  // namespace rocefs
