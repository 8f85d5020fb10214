// WaySearch: breadth-first search over the switches of a fabric, against the direction of travel:
// all ports through which each switch is nearest to a destination. Switches are numbers; nothing is
// looked up by name.
//
// The hops of a switch come in the order in which the search meets their links: by the far switch's
// place in the search, then by the links' order. ECMP chooses by that order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rocefs {

// A link between two switches, from a port of one to the other.
struct Trunk {
  uint32_t link = 0;  // number in the fabric
  uint32_t from = 0;
  uint16_t port = 0;  // of `from`
};

class WaySearch {
 public:
  // `trunks`: those to each switch, in the order of their links. They outlive the search.
  explicit WaySearch(const std::vector<std::vector<Trunk>>& trunks)
      : trunks_(trunks), distances_(trunks.size()), hops_(trunks.size()) {}

  // Forgets the last search. Then at least one start.
  void begin();
  // The destination is behind that switch, which needs no way.
  void start(uint32_t hub) { reach(hub, 1); }
  // The destination is cabled to a port of that switch.
  void start(uint32_t hub, uint16_t port);
  // Searches over the links for which `usable(link)` holds.
  template <class Usable>
  void run(Usable usable) {
    while (next_ < order_.size()) {
      uint32_t at = order_[next_++];
      for (const Trunk& trunk : trunks_[at]) {
        if (!usable(trunk.link)) continue;
        if (distances_[trunk.from] == 0) reach(trunk.from, distances_[at] + 1);
        if (distances_[trunk.from] == distances_[at] + 1) hops_[trunk.from].push_back(trunk.port);
      }
    }
  }
  // Ports through which that switch is nearest; empty without a way.
  std::span<const uint16_t> hops(size_t hub) const { return hops_[hub]; }
  bool reached(size_t hub) const { return distances_[hub] != 0; }

 private:
  void reach(uint32_t hub, uint32_t distance) {
    distances_[hub] = distance;
    order_.push_back(hub);
  }

  const std::vector<std::vector<Trunk>>& trunks_;
  std::vector<uint32_t> distances_;  // from 1; 0: not reached
  std::vector<std::vector<uint16_t>> hops_;
  std::vector<uint32_t> order_;
  size_t next_ = 0;
};

inline void WaySearch::begin() {
  std::fill(distances_.begin(), distances_.end(), 0);
  for (auto& hops : hops_) hops.clear();
  order_.clear();
  next_ = 0;
}

inline void WaySearch::start(uint32_t hub, uint16_t port) {
  if (distances_[hub] == 0) reach(hub, 1);
  hops_[hub].push_back(port);
}

}  // namespace rocefs
