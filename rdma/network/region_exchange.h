// RegionExchange: what a region of the fabric sends to others, and has been handed by them.
#pragma once

#include <memory>
#include <vector>

#include "core/loop/regions.h"
#include "rdma/fabric/region_crossings.h"

namespace rocefs {

class RegionExchange final : public RegionWork {
 public:
  // `pool`: the packets of the region.
  RegionExchange(Region& region, PacketPool& pool) : region_(region), pool_(pool) {
    region.set_work(*this);
  }
  RegionExchange(const RegionExchange&) = delete;
  RegionExchange& operator=(const RegionExchange&) = delete;

  // Before the engine starts: the way to another region, which outlives this object.
  Crossings& way_to(RegionExchange& other);

  void enter() override;
  void leave() override { PacketPool::use_here(nullptr); }
  void hand_over() override;
  // Alone: drops all that is on its way from here.
  void reset();

 private:
  struct Way {
    RegionExchange* to;
    std::unique_ptr<RegionCrossings> crossings;
  };

  Region& region_;
  PacketPool& pool_;
  std::vector<Way> ways_;                 // a region has few neighbours
  std::vector<RegionCrossings*> handed_;  // by others, in the order of their numbers
};

}  // namespace rocefs
