// LinkCapacities: how much the directions of cables could have carried, whatever their rates were
// in the course of a run.
#pragma once

#include <unordered_map>

#include "core/base/time.h"
#include "rdma/network/fabric.h"

namespace rocefs {

class LinkCapacities {
 public:
  // Before the engine starts. `fabric` must not change parameters after the end of this object.
  explicit LinkCapacities(const Fabric& fabric);
  LinkCapacities(const LinkCapacities&) = delete;
  LinkCapacities& operator=(const LinkCapacities&) = delete;

  // Core thread: counters begin again.
  void restart(TimeNs now);
  // Bits from the begin, or the last restart, to `now`. While the engine stands still.
  double bits(const Link& link, TimeNs now) const;

 private:
  struct Capacity {
    uint64_t rate_bps;  // since then
    TimeNs since = 0;
    double before = 0;  // bits
    double at(TimeNs now) const {
      return before + static_cast<double>(rate_bps) * static_cast<double>(now - since) * 1e-9;
    }
  };

  std::unordered_map<const Link*, Capacity> capacities_;
};

}  // namespace rocefs
