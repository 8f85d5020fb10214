// Routes: which way MADs and packets go in a subnet: a picture of its cables as they are at one
// moment. Cheap to make, for one question or for a table's worth of them.
//
// Shortest paths over switches; of several the one by the lowest port. Channel adapters do not
// forward. Core thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mad_cc/subnet.h"

namespace rocefs {

class Routes {
 public:
  // `subnet` outlives it; `state` is asked now and not again.
  Routes(const Subnet& subnet, const SubnetState& state);

  // What lies at the other end of the cable at that port, if the cable is up and there is a node.
  std::optional<Subnet::End> across(Subnet::End at) const;
  // Whether there is a way from the manager to this end: a switch's port 0, or a channel adapter's
  // port with a cable that is up. Its node may have let go of it: see SubnetState::present().
  bool reachable(Subnet::End end) const { return path(end, subnet_->manager).has_value(); }
  bool present(size_t node) const { return nodes_[node].present; }

  struct Path {
    uint32_t hops = 0;      // cables; 0 from an end to itself
    uint64_t rate_bps = 0;  // of the slowest direction on the way
    uint16_t mtu = 0;       // the least on the way
  };
  // Nothing where there is no way. Both are ends with a LID; nodes that are absent have none.
  std::optional<Path> path(Subnet::End from, Subnet::End to) const;

  // 14.2.5.10: by which port a switch sends on what goes to `to`: 0 for itself, kNoWay for none.
  static constexpr uint8_t kNoWay = 255;
  uint8_t forward(size_t switch_node, Subnet::End to) const;

  // How many ports it has looked at for all that: what it has cost so far.
  uint64_t effort() const { return effort_; }

 private:
  struct Port {
    bool up = false;
    uint64_t rate_bps = 0;
  };
  struct Node {
    bool present = false;
    std::vector<Port> ports;
  };
  // From one node towards the switch whose row it stands in.
  struct Step {
    static constexpr uint32_t kNever = UINT32_MAX;
    uint32_t hops = kNever;
    uint16_t mtu = 0;
    uint8_t port = kNoWay;
    uint64_t rate_bps = 0;
  };
  using Row = std::vector<Step>;  // by node

  const Port& port(Subnet::End at) const { return nodes_[at.node].ports[at.port]; }
  // The path from `at` over its cable to `to`, then on as `rest` says.
  Path over(Subnet::End at, Subnet::End to, const Step& rest) const;
  const Row& towards(size_t switch_node) const;
  void visit(size_t node, Row& row, std::vector<size_t>& next) const;

  const Subnet* subnet_;
  std::vector<Node> nodes_;
  mutable uint64_t effort_ = 0;
  mutable std::vector<Row> rows_;  // by switch; empty until somebody asks
};

}  // namespace rocefs
