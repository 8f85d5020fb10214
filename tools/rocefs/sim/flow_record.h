// FlowRecord: what a run tells of one flow, once: when it has ended, or when the run ends before
// it. FlowSink: who is told. A run of a million flows keeps none of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/time.h"
#include "rdma/traffic/flow_spec.h"

namespace rocefs {

struct FlowRecord {
  // kLost: an unreliable flow that has sent all its messages, of which some did not arrive.
  enum class State : uint8_t { kDone, kLost, kFailed, kStopped, kRemoved, kRunning, kNotStarted };

  // Valid during the call.
  std::string_view name;      // of [flows]; of a load, LOAD.NUMBER
  std::string_view load;      // its [load], empty for one of [flows]
  std::string_view from, to;  // ports, as in [flows]
  std::string_view reason;    // of a failure or a loss
  FlowOp op = FlowOp::kWrite;
  State state = State::kNotStarted;
  uint64_t bytes = 0;     // payload that it moves when it is done
  TimeNs start = 0;       // virtual time
  TimeNs elapsed = 0;     // since then, to its end or the run's; a flow that is done: its FCT
  double ideal_ns = 0;    // FCT alone on the idle network
  uint64_t moved = 0;     // octets of payload so far
  uint64_t received = 0;  // messages that have arrived
  uint64_t packets = 0, retransmitted = 0, cnps = 0, timeouts = 0;

  double slowdown() const { return ideal_ns > 0 ? static_cast<double>(elapsed) / ideal_ns : 0; }
};

class FlowSink {
 public:
  virtual ~FlowSink() = default;
  // In the order of the ends, but that flows of [flows] come behind those of loads that ended in
  // the same step of the run; the cut off ones last. One thread at a time: the core while the
  // engine runs, the control thread while it stands still.
  virtual void flow_ended(const FlowRecord& flow) = 0;
};

}  // namespace rocefs
