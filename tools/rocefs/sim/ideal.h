// How long a flow takes that is alone in the fabric.
#pragma once

#include "core/base/result.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"

namespace rocefs {

// From the first octet sent to the moment when the sender knows that the last one has arrived, in
// nanoseconds: all packets, one behind the other, over the slowest link of the shortest path at its
// full rate, one packet over each other link of it, the propagation there, and the way back of the
// acknowledgement (of a READ: the way of the request). With the links' present parameters; before
// the engine starts, or on its thread. EINVAL where no path leads from one end to the other.
Result<double> ideal_fct_ns(Fabric& fabric, const Topology& topology, const FlowSpec& flow);

}  // namespace rocefs
