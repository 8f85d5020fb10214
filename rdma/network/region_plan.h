// Regions of a topology, which threads may run beside each other: switches with the devices that
// are cabled to them. They follow from the topology alone, not from the number of threads.
#pragma once

#include <cstddef>

#include "core/config/topology.h"
#include "rdma/network/core_plan.h"

namespace rocefs {

// At most that many regions, from 1, and fewer for a small topology. Each is of switches that
// follow one another in the topology, with like numbers of cables, and of the devices whose first
// cable leads to one of those. Devices without a cable to a switch are in the first one.
CorePlan plan_regions(const Topology& topology, size_t most);

}  // namespace rocefs
