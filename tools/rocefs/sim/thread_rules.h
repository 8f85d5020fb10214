// Rules of a run on threads: what needs the order of all events of the fabric, and so has none
// between regions.
#pragma once

#include "core/base/result.h"
#include "rdma/network/fabric.h"
#include "rdma/workload/load_spec.h"

namespace rocefs {

// Regions of a run, at most: each is a job for a thread.
inline constexpr size_t kMostRegions = 64;

// EOPNOTSUPP for a load whose flows wait for each other, or neither write nor read.
Result<void> check_threads(const Load& load);
Result<void> check_threads(const FlowSpec& flow);
// EOPNOTSUPP, with the reason, while something in the fabric is on that needs that order. While the
// engine stands still.
Result<void> check_threads(const Fabric& fabric);

}  // namespace rocefs
