#include "tools/rocefs/sim/equal_ways.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "rdma/nic/device.h"

namespace rocefs {

EqualWays::EqualWays(Fabric& fabric)
    : out_(fabric.switches().size()),
      in_(fabric.switches().size()),
      distances_(fabric.switches().size()),
      seen_(fabric.switches().size()) {
  auto switch_at_end = [&](const Link& link) {
    const Switch* there = fabric.find_switch(fabric.far_end(link));
    return there ? there->number() : kNoSwitch;
  };
  const auto& links = fabric.links();
  for (uint32_t i = 0; i < links.size(); ++i) {
    const LinkParameters& now = links[i]->parameters();
    // A cable's two links are adjacent.
    Cable cable{switch_at_end(*links[i ^ 1]), switch_at_end(*links[i]), now.rate_bps, now.delay_ns};
    if (cable.from != kNoSwitch && cable.to != kNoSwitch) {
      out_[cable.from].push_back(i);
      in_[cable.to].push_back(i);
    }
    cables_.push_back(cable);
  }
}

void EqualWays::Layer::add(const Cable& cable) {
  hop_.rate_bps = std::max(hop_.rate_bps, cable.rate_bps);
  hop_.delay_ns = std::min(hop_.delay_ns, cable.delay_ns);
  if (paths_ > 1) rates_.push_back(cable.rate_bps);
}

Hop EqualWays::Layer::hop() {
  hop_.total_bps = hop_.rate_bps;
  if (paths_ == 1) return hop_;
  const auto taken = rates_.begin() + static_cast<ptrdiff_t>(std::min(paths_, rates_.size()));
  std::partial_sort(rates_.begin(), taken, rates_.end(), std::greater<>());
  hop_.total_bps = std::accumulate(rates_.begin(), taken, uint64_t{0});
  return hop_;
}

// Links from each switch to that one; kNoSwitch without a way.
const std::vector<uint32_t>& EqualWays::distances_to(uint32_t last) {
  std::vector<uint32_t>& distances = distances_[last];
  if (!distances.empty()) return distances;
  distances.assign(in_.size(), kNoSwitch);
  distances[last] = 0;
  std::vector<uint32_t> order{last};
  for (size_t next = 0; next < order.size(); ++next) {
    for (uint32_t link : in_[order[next]]) {
      const uint32_t from = cables_[link].from;
      if (distances[from] != kNoSwitch) continue;
      distances[from] = distances[order[next]] + 1;
      order.push_back(from);
    }
  }
  return distances;
}

// Goes from all switches that are equally near to the next ones.
const Way& EqualWays::trunks(uint32_t first, uint32_t last, uint64_t paths) {
  auto [known, made] = trunks_.try_emplace({first, last, paths});
  Way& way = known->second;
  if (!made) return way;
  const std::vector<uint32_t>& distances = distances_to(last);
  std::vector<uint32_t> at{first}, next;
  for (uint32_t left = distances[first]; left != kNoSwitch && left > 0; --left) {
    Layer layer(paths);
    ++layers_;
    for (uint32_t one : at) {
      for (uint32_t link : out_[one]) {
        const uint32_t to = cables_[link].to;
        if (distances[to] != left - 1) continue;
        layer.add(cables_[link]);
        if (std::exchange(seen_[to], layers_) != layers_) next.push_back(to);
      }
    }
    way.push_back(layer.hop());
    at = std::exchange(next, {});
  }
  return way;
}

Way EqualWays::between(const Port& from, const Port& to, uint64_t paths) {
  if (!from.cabled() || !to.cabled()) return {};
  const uint32_t first = from.egress().id(), last = to.egress().id() ^ 1;
  auto hop = [&](uint32_t link) {
    Layer layer(1);
    layer.add(cables_[link]);
    return layer.hop();
  };
  if (first == last) return {hop(first)};
  const uint32_t near = cables_[first].to, far = cables_[last].from;
  if (near == kNoSwitch || far == kNoSwitch) return {};
  const Way& between = trunks(near, far, paths);
  if (between.empty() && near != far) return {};
  Way way{hop(first)};
  way.insert(way.end(), between.begin(), between.end());
  way.push_back(hop(last));
  return way;
}

}  // namespace rocefs
