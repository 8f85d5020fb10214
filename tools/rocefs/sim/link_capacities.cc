#include "tools/rocefs/sim/link_capacities.h"

namespace rocefs {

LinkCapacities::LinkCapacities(const Fabric& fabric) {
  for (Link* link : fabric.links()) {
    Capacity& capacity = capacities_[link];
    capacity.rate_bps = link->parameters().rate_bps;
    link->add_parameter_listener([&capacity, link] {
      const uint64_t rate_bps = link->parameters().rate_bps;
      if (rate_bps == capacity.rate_bps) return;
      const TimeNs now = link->scheduler().now();
      capacity = {rate_bps, now, capacity.at(now)};
    });
  }
}

void LinkCapacities::restart(TimeNs now) {
  for (auto& [link, capacity] : capacities_) capacity = {capacity.rate_bps, now};
}

double LinkCapacities::bits(const Link& link, TimeNs now) const {
  return capacities_.at(&link).at(now);
}

}  // namespace rocefs
