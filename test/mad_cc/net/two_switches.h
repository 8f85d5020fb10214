// Subnet by hand: mb_0 - sw_0 - sw_1 - mb_1, a second cable between the switches, and a state that
// tests set. The second port of mb_1 is in another subnet, the fourth of sw_0 has no cable.
//
//   mb_0/1 - sw_0/1   sw_0/2 - sw_1/1   sw_0/3 - sw_1/2   sw_1/3 - mb_1/1
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "mad_cc/mad/mad.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

inline constexpr size_t kMb0 = 0, kMb1 = 1, kUpperSwitch = 2, kLowerSwitch = 3;
inline constexpr uint16_t kLidOfSw0 = 1, kLidOfMb0 = 2, kLidOfMb1 = 3, kLidOfSw1 = 4;

inline Subnet two_switches() {
  Subnet subnet;
  auto add = [&](const char* name, bool is_switch, uint64_t guid, size_t ports) {
    SubnetNode node{is_switch, name, guid, std::vector<SubnetPort>(ports + 1)};
    for (size_t port = is_switch ? 0 : 1; port <= ports; ++port) {
      node.ports[port].member = true;
      node.ports[port].guid = is_switch ? guid : guid + port;
    }
    subnet.nodes.push_back(node);
  };
  add("mb_0", false, 0xa0, 1);
  add("mb_1", false, 0xb0, 2);
  add("sw_0", true, 0xc0, 4);
  add("sw_1", true, 0xd0, 3);
  subnet.nodes[kMb1].ports[2].member = false;
  auto cable = [&](Subnet::End a, Subnet::End b) {
    for (auto [at, far] : {std::pair(a, b), std::pair(b, a)}) {
      subnet.nodes[at.node].ports[at.port].peer = far.node;
      subnet.nodes[at.node].ports[at.port].peer_port = far.port;
    }
  };
  cable({kMb0, 1}, {kUpperSwitch, 1});
  cable({kUpperSwitch, 2}, {kLowerSwitch, 1});
  cable({kUpperSwitch, 3}, {kLowerSwitch, 2});
  cable({kLowerSwitch, 3}, {kMb1, 1});
  subnet.manager = {kUpperSwitch, 0};
  subnet.by_lid = {{kUpperSwitch, 0}, {kMb0, 1}, {kMb1, 1}, {kLowerSwitch, 0}};
  for (size_t i = 0; i < subnet.by_lid.size(); ++i) {
    const Subnet::End& end = subnet.by_lid[i];
    subnet.nodes[end.node].ports[end.port].lid = static_cast<uint16_t>(i + 1);
  }
  return subnet;
}

struct SetState final : SubnetState {
  explicit SetState(const Subnet& of) : subnet(of) {}
  const Subnet& subnet;
  std::set<size_t> absent;
  std::set<std::pair<size_t, uint8_t>> down;  // either end of a cable
  std::map<std::pair<size_t, uint8_t>, PerfCounters> counted;
  std::map<std::pair<size_t, uint8_t>, PerfCounters> cleared;  // as it was told

  bool present(size_t node) const override { return !absent.contains(node); }
  bool up(size_t node, uint8_t port) const override {
    if (port == 0) return true;
    const SubnetPort& at = subnet.nodes[node].ports[port];
    if (at.peer == SubnetPort::kNoPeer) return false;
    return !down.contains({node, port}) && !down.contains({at.peer, at.peer_port});
  }
  uint64_t rate_bps(size_t, uint8_t) const override { return 100'000'000'000; }
  std::string description(size_t node) const override { return subnet.nodes[node].name + "!"; }
  PerfCounters counters(size_t node, uint8_t port) const override {
    auto it = counted.find({node, port});
    return it == counted.end() ? PerfCounters{} : it->second;
  }
  void clear_counters(size_t node, uint8_t port, const PerfCounters& which) override {
    cleared[{node, port}] = which;
    if (which.xmit_packets) counted[{node, port}].xmit_packets = 0;
  }
  std::vector<bool> enables;  // as it was told
  void set_enabled(size_t node, uint8_t port, bool enabled) override {
    enables.push_back(enabled);
    if (enabled) {
      down.erase({node, port});
    } else {
      down.insert({node, port});
    }
  }
  void set_manager_lid(size_t node, uint8_t port, uint16_t lid) override {
    manager_lids[{node, port}] = lid;
  }
  std::map<std::pair<size_t, uint8_t>, uint16_t> manager_lids;  // as it was told
};

// Builds a request with its header; class version 1 except for the SA's.
inline mad::Mad request_of(uint8_t mgmt_class, uint8_t method, uint16_t attribute,
                           uint32_t modifier = 0) {
  mad::Mad mad;
  mad.bytes[0] = 1;
  mad.bytes[1] = mgmt_class;
  mad.bytes[2] = mgmt_class == mad::kSubnAdm ? 2 : 1;
  mad.bytes[3] = method;
  mad.set_tid(0x1122334455667788);
  wire::store16(&mad.bytes[16], attribute);
  wire::store32(&mad.bytes[20], modifier);
  return mad;
}

// Returns `count` octets from `at`, in hexadecimal.
inline std::string hex(const mad::Mad& mad, size_t at, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = at; i < at + count; ++i) {
    text += kDigits[mad.bytes[i] >> 4];
    text += kDigits[mad.bytes[i] & 15];
  }
  return text;
}

}  // namespace rocefs
