// Flow completion time of a flow that is alone in the fabric.
#pragma once

#include "core/base/result.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"

namespace rocefs {

// Time from the first octet sent to the acknowledgement of the last one, in nanoseconds: all
// packets in a row over the slowest link of the shortest path at its full rate, one packet over
// each other link, propagation, and the way back of the acknowledgement (for a READ the way of the
// request). Uses the links' present parameters; call before the engine starts, or on its thread.
// EINVAL without a path between the ends.
Result<double> ideal_fct_ns(Fabric& fabric, const Topology& topology, const FlowSpec& flow);

}  // namespace rocefs
