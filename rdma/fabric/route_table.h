// RouteTable: a switch's next hops towards the other switches of its fabric, and a flow's choice
// among equal ones (ECMP) by a hash of its five-tuple, salted, so that the choices of successive
// switches are independent.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "rdma/packet/packet.h"

namespace rocefs {

class RouteTable {
 public:
  // Different sets of next hops: no more than switches.
  static constexpr size_t kMaxSets = 65'535;
  explicit RouteTable(uint64_t salt) : salt_(salt) {}

  // Sets the ports through which the switch with that number is nearest, in place of earlier ones;
  // none: it cannot be reached. Switches with the same ports share them. Not on the packet path.
  void set(size_t hub, std::span<const uint16_t> hops);
  // Forgets all routes.
  void clear();
  // Next hops to a switch; empty without a route.
  std::span<const uint16_t> find(size_t hub) const {
    if (hub >= by_hub_.size()) return {};
    const Set& set = sets_[by_hub_[hub]];
    return {set.count == 1 ? &set.only : hops_.data() + set.first, set.count};
  }
  // Asks the CPU for what find() will read first.
  void prefetch(size_t hub) const {
    if (hub < by_hub_.size()) __builtin_prefetch(&by_hub_[hub]);
  }
  // Number of different sets of next hops.
  size_t distinct() const { return known_.size(); }

  // Hash of source and destination address, protocol and UDP ports; all bits are equally random.
  uint64_t flow_hash(const Packet& packet) const;
  // A number below `count`, uniformly distributed.
  static size_t choose(uint64_t flow_hash, size_t count) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<size_t>(Wide{flow_hash} * count >> 64);
  }

 private:
  struct Set {
    uint32_t first = 0;  // in hops_
    uint16_t count = 0;
    uint16_t only = 0;  // a single hop, which saves a miss
  };

  const uint64_t salt_;
  std::vector<uint16_t> by_hub_;  // index of sets_; two octets, since each switch has a table
  std::vector<Set> sets_{1};      // the first is empty
  std::vector<uint16_t> hops_;
  std::map<std::vector<uint16_t>, uint16_t> known_;  // index of sets_
};

}  // namespace rocefs
