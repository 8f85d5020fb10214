// Routes: the routes of MADs and packets in a subnet, for one question or for a table of them.
// Reads the state of each port lazily and once, so that it is cheap to make and answers
// consistently.
//
// Finds shortest paths over switches; among several, the one by the lowest port. Channel adapters
// do not forward. Core thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mad_cc/net/subnet.h"

namespace rocefs {

class Routes {
 public:
  // The arguments outlive the routes.
  Routes(const Subnet& subnet, const SubnetState& state);

  // Returns the other end of the cable at that port, if the cable is up and the node exists.
  std::optional<Subnet::End> across(Subnet::End at) const;
  // Returns whether the manager reaches this end: a switch's port 0, or a channel adapter's port
  // with a cable that is up. The driver of its node may be unbound: see SubnetState::present().
  bool reachable(Subnet::End end) const { return path(end, subnet_->manager).has_value(); }
  bool present(size_t node) const;

  struct Path {
    uint32_t hops = 0;      // cables; 0 from an end to itself
    uint64_t rate_bps = 0;  // of the slowest direction on the way
    uint16_t mtu = 0;       // the least on the way
  };
  // Returns nothing without a route. Both are ends with a LID; absent nodes have none.
  std::optional<Path> path(Subnet::End from, Subnet::End to) const;

  // Returns the output port of a switch for `to` (14.2.5.10): 0 for itself, kNoWay for none.
  static constexpr uint8_t kNoWay = 255;
  uint8_t forward(size_t switch_node, Subnet::End to) const;

  // Returns a block of 64 LIDs of a switch's LinearForwardingTable, as a manager has written it, or
  // by these routes.
  SubnetSettings::Octets linear_block(size_t switch_node, uint32_t block) const;

  // Returns the number of ports read so far, a measure of the cost.
  uint64_t effort() const { return effort_; }

 private:
  enum class Known : uint8_t { kNot, kNo, kYes };
  template <class Ask>
  static bool once(Known& known, Ask ask) {
    if (known == Known::kNot) known = ask() ? Known::kYes : Known::kNo;
    return known == Known::kYes;
  }
  // Next hop of a node towards the switch of the row.
  struct Step {
    static constexpr uint32_t kNever = UINT32_MAX;
    uint32_t hops = kNever;
    uint16_t mtu = 0;
    uint8_t port = kNoWay;
    uint64_t rate_bps = 0;
  };
  using Row = std::vector<Step>;  // by node

  bool up(Subnet::End at) const;
  uint64_t rate_bps(Subnet::End at) const;
  // Path from `at` over its cable to `to`, then on along `rest`.
  Path over(Subnet::End at, Subnet::End to, const Step& rest) const;
  const Row& towards(size_t switch_node) const;
  void visit(size_t node, Row& row, std::vector<size_t>& next) const;

  const Subnet* subnet_;
  const SubnetState* state_;
  mutable std::vector<Known> present_;       // by node
  std::vector<uint32_t> first_port_;         // of each node, in these:
  mutable std::vector<Known> up_;            // by port
  mutable std::vector<uint64_t> rates_bps_;  // by port, 0: not known; empty until somebody asks
  mutable uint64_t effort_ = 0;
  mutable std::vector<Row> rows_;  // by switch; empty until somebody asks
};

}  // namespace rocefs
