// FlowRun: a flow in this mount while it waits or runs: both its ends, one of them, or a listener.
// FlowStats: its figures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/counter.h"
#include "core/base/result.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/verbs.h"
#include "rdma/traffic/flow_spec.h"
#include "rdma/transport/congestion.h"

namespace rocefs {

class Fabric;

// Written by the core, read by any thread.
struct FlowStats {
  Counter bytes, messages;  // completed at the near end
  Counter received;         // messages that arrived: fewer where they may be lost
  Counter packets, retransmitted, timeouts, mismatched;
  Counter cnps;              // received by the queue pairs of both ends
  CongestionReading sender;  // of the first queue pair that sends data
  Counter started_ns;        // kNotYet before the start
  Counter ended_ns;          // 0 while the flow runs

  static constexpr uint64_t kNotYet = ~uint64_t{0};
  FlowStats() { started_ns.set(kNotYet); }
};

// Core thread.
class FlowRun {
 public:
  virtual ~FlowRun() = default;
  // Ends the flow without a report.
  virtual void stop() = 0;
  // Adds to the stats what the queue pairs have done by now: at each end of a message this is done.
  virtual void account() {}
  // The bytes of a received file, complete once the flow has ended well.
  virtual std::shared_ptr<LocalMemory> received() const = 0;
};

// The parameters of a flow and its surroundings.
struct FlowParts {
  Fabric& fabric;
  FlowSpec spec;  // with another mount the same at both ends but for `from`, the port of this one
  QpOwner owner;
  std::shared_ptr<FlowStats> stats;
  std::shared_ptr<LocalMemory> input;  // a file that leaves from here; null: none
  uint64_t seed;                       // of made-up messages, the same at both ends
  // Runs once at most, and not from within a call: the near end has all its completions, or an end
  // has failed.
  std::function<void(Result<void>)> ended;
  // Takes the memory at the end, because freeing much of it takes a while. Null: it is freed.
  std::function<void(std::shared_ptr<LocalMemory>)> discard = nullptr;
};

}  // namespace rocefs
