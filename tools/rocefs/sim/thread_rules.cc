#include "tools/rocefs/sim/thread_rules.h"

#include <cerrno>

#include "rdma/nic/device.h"
#include "rdma/traffic/flow_ops.h"

namespace rocefs {

Result<void> check_threads(const Load& load) {
  if (!load.pattern->follows_clock()) {
    return Error{EOPNOTSUPP, "its flows wait for each other: not with --threads"};
  }
  return check_threads(load.flow);
}

Result<void> check_threads(const FlowSpec& flow) {
  if (flow.op == FlowOp::kWrite || flow.op == FlowOp::kRead) return {};
  return errorf(EOPNOTSUPP, "op={}: with --threads, flows write or read",
                flow_op_info(flow.op).name);
}

Result<void> check_threads(const Fabric& fabric) {
  for (const auto& device : fabric.devices()) {
    if (device->cfr().controlled()) {
      return errorf(EOPNOTSUPP, "PCC runs on {}: not with --threads", device->name());
    }
  }
  for (const auto& one : fabric.switches()) {
    if (one->observed())
      return errorf(EOPNOTSUPP, "NPCC of {} is on: not with --threads", one->name());
  }
  if (fabric.captures()) return Error{EOPNOTSUPP, "packets are captured: not with --threads"};
  for (const Link* link : fabric.links()) {
    if (link->filtered()) {
      return errorf(EOPNOTSUPP, "faults of {} are injected: not with --threads", link->name());
    }
    if (link->parameters().capture) {
      return errorf(EOPNOTSUPP, "capture of {} is on: not with --threads", link->name());
    }
  }
  if (fabric.lookahead() > 0) return {};
  return Error{EOPNOTSUPP, "a cable between two switches has no delay: not with --threads"};
}

}  // namespace rocefs
