#include "rdma/network/region_exchange.h"

#include "rdma/fabric/link.h"

namespace rocefs {

Crossings& RegionExchange::way_to(RegionExchange& other) {
  for (const Way& one : ways_) {
    if (one.to == &other) return *one.crossings;
  }
  return *ways_.emplace_back(&other, std::make_unique<RegionCrossings>(region_)).crossings;
}

void RegionExchange::enter() {
  PacketPool::use_here(&pool_);
  for (RegionCrossings* one : handed_) {
    one->take([](Crossing& crossing) { crossing.link->take(crossing); });
  }
  handed_.clear();
}

void RegionExchange::reset() {
  for (const Way& one : ways_) one.crossings->clear();
}

void RegionExchange::hand_over() {
  for (const Way& one : ways_) {
    if (one.crossings->empty()) continue;
    const TimeNs due = one.crossings->hand_over();
    one.to->handed_.push_back(one.crossings.get());
    one.to->region_.expect(due);
  }
}

}  // namespace rocefs
