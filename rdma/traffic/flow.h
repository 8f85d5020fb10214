// Flow: built-in traffic between two devices. It registers memory, creates and connects queue
// pairs, posts requests and polls completions through the same calls that clients use, and checks
// every byte of every message at the moment its work request completes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/scheduler.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/verbs.h"
#include "rdma/traffic/flow_plan.h"
#include "rdma/traffic/flow_spec.h"
#include "rdma/transport/completion_queue.h"

namespace rocefs {

// Written by the core, read by any thread.
struct FlowStats {
  Counter bytes, messages;  // completed at the near end
  Counter received;         // messages that arrived: fewer where they may be lost
  Counter packets, retransmitted, timeouts, mismatched;
  Counter cnps;              // received by the queue pairs of both ends
  CongestionReading sender;  // of the first queue pair that sends data
  Counter started_ns;        // kNotYet until it has
  Counter ended_ns;          // 0 while the flow runs

  static constexpr uint64_t kNotYet = ~uint64_t{0};
  FlowStats() { started_ns.set(kNotYet); }
};

// What runs of a flow in this mount: all of it, or one half. On the core's thread.
class FlowRun {
 public:
  virtual ~FlowRun() = default;
  // Ends it without telling.
  virtual void stop() = 0;
  // What was received of an input; whole once the flow has ended well.
  virtual std::shared_ptr<LocalMemory> received() const = 0;
};

class Flow final : public FlowRun, public DeviceClient {
 public:
  // On the core's thread, as everything here. `input` is what is sent, message by message; without
  // it the flow makes bytes up. `ended` runs once, not from within start().
  using Ended = std::function<void(Result<void>)>;
  Flow(Fabric& fabric, const FlowSpec& spec, const QpOwner& owner, std::shared_ptr<FlowStats> stats,
       std::shared_ptr<LocalMemory> input, Ended ended);
  ~Flow() override;

  // Everything that can be wrong with the spec shows here; nothing has started then.
  Result<void> start();
  // The flow fails.
  void device_removed(Device& device) override;
  void stop() override;
  std::shared_ptr<LocalMemory> received() const override { return sink().memory; }

 private:
  struct End {
    Device* device = nullptr;
    Port* port = nullptr;
    std::shared_ptr<LocalMemory> memory;
    uint64_t address = 0;
    uint32_t key = 0;
  };
  struct Pair {
    Qp* near = nullptr;
    Qp* far = nullptr;
    AddressVector path;
    uint64_t posted = 0;  // messages
    uint64_t completed = 0;
    uint64_t receives = 0;                                     // receive requests posted
    uint64_t received = 0;                                     // and completed
    uint64_t packets = 0, resent = 0, timeouts = 0, cnps = 0;  // already in the stats
  };

  bool unreliable() const { return is_unreliable(spec_.op); }
  bool sends() const { return sends_messages(spec_.op); }
  // Where the bytes come from and go to: of a READ the other way round.
  const End& source() const { return spec_.op == FlowOp::kRead ? far_ : near_; }
  const End& sink() const { return spec_.op == FlowOp::kRead ? near_ : far_; }

  Result<void> open_ends();
  Result<void> open_end(End& end, uint64_t bytes, uint8_t access,
                        std::shared_ptr<LocalMemory> memory);
  Result<void> connect(Pair& pair, uint32_t index);
  Result<void> make_pair(Pair& pair);
  std::shared_ptr<LocalMemory> fresh_memory(uint64_t bytes) const;
  void post_more(uint32_t pair);
  void post_receives(uint32_t pair);
  SendRequest request_of(uint32_t pair, uint64_t position) const;
  void on_completions(TimeNs now);
  bool take_send(const Completion& completion);
  bool take_receive(const Completion& completion);
  void verify(const FlowPlan::Slot& slot);
  void finish(TimeNs now, Result<void> result);
  void account(Pair& pair);
  void tear_down();

  Fabric& fabric_;
  const FlowSpec spec_;
  const QpOwner owner_;
  std::shared_ptr<FlowStats> stats_;
  std::shared_ptr<LocalMemory> input_;
  Ended ended_;
  End near_, far_;
  FlowPlan plan_;
  const FlowPattern pattern_;
  CompletionQueue send_cq_, receive_cq_;
  std::vector<Pair> pairs_;
  uint64_t originals_ = 0;  // the sum of what atomics found
  Event poll_;
  bool running_ = false;
};

}  // namespace rocefs
