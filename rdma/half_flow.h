// HalfFlow: the end of a flow that is in this mount when the other one is in another, behind an
// uplink. The near end posts the requests, the far end has what they need: memory, receive
// requests. What the ends must know of each other is a FlowEnd, and travels by an exchange.
//
// On the core's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "rdma/flow.h"

namespace rocefs {

// A queue pair as the other end needs it. 24 bits each.
struct FlowQp {
  uint32_t qpn = 0;
  uint32_t psn = 0;  // of the first packet that it sends
  bool operator==(const FlowQp&) const = default;
};

struct FlowEnd {
  uint32_t mtu = 0;
  uint64_t address = 0;  // of the far end's memory, with its rkey
  uint32_t key = 0;
  uint64_t bytes = 0;  // of a file that the far end lets be read
  std::vector<FlowQp> qps;
};

// What arrived at the far end.
struct FlowReport {
  uint64_t received = 0;  // messages
  uint64_t bytes = 0;
  uint64_t mismatched = 0;
};

class HalfFlow final : public FlowRun, public DeviceClient {
 public:
  struct Parts {
    Fabric& fabric;
    FlowSpec spec;  // of both ends the same but for `from`, the port of this one
    Owner owner;
    std::shared_ptr<FlowStats> stats;
    std::shared_ptr<LocalMemory> input;  // a file that leaves from here; null: there is none
    std::optional<uint64_t> file;        // bytes of the file that arrives or leaves here
    uint64_t seed;                       // of what is made up, the same at both ends
    bool near;
    Ip local, remote;
    // Once at most, and not from within a call: the near end has all its completions, or an end
    // fails.
    std::function<void(Result<void>)> ended;
  };
  explicit HalfFlow(Parts parts);
  ~HalfFlow() override;

  // Makes the queue pairs, and at the far end the memory; says what the other end must know.
  Result<FlowEnd> open();
  // Joins them to the other end's. The near end begins, the far end is ready. EINVAL for what the
  // other end says and cannot be.
  Result<void> connect(const FlowEnd& other);
  // Far end: the near one has all its completions. `report` runs once, not from within this call.
  void finish(std::function<void(FlowReport)> report);
  // Near end, once it has ended: what the far one reports.
  void conclude(const FlowReport& report);

  void device_removed(Device& device) override;
  void stop() override;
  std::shared_ptr<LocalMemory> received() const override { return memory_; }

 private:
  struct Pair {
    Qp* qp = nullptr;
    FlowQp other;
    uint32_t psn = 0;
    uint64_t posted = 0, completed = 0;  // messages
    uint64_t receives = 0, received = 0;
    uint64_t packets = 0, resent = 0, timeouts = 0, cnps = 0;  // already in the stats
  };

  const FlowSpec& spec() const { return parts_.spec; }
  bool reads() const { return spec().op == FlowOp::kRead; }
  std::span<uint8_t> bytes_at(const FlowPlan::Slot& slot) {
    return memory_->bytes().subspan(slot.offset, slot.length);
  }
  Result<void> plan(std::optional<uint64_t> file);
  Result<void> make_qps();
  Result<void> make_memory();
  Result<void> bring_up(uint32_t pair, const FlowQp& other, uint32_t mtu);
  AddressVector path() const;
  void post_more(uint32_t pair);
  void post_receives(uint32_t pair);
  SendRequest request_of(uint32_t pair, uint64_t position) const;
  void on_completions(TimeNs now);
  bool take_send(const Completion& completion);
  void take_receive(const Completion& completion);
  void take_answer(const FlowPlan::Slot& slot, uint64_t message);
  void on_finish(TimeNs now);
  FlowReport look_at_all();
  void end(TimeNs now, Result<void> result);
  void account(Pair& pair);
  void tear_down();

  Parts parts_;
  Port* port_ = nullptr;
  const FlowPattern pattern_;
  std::optional<FlowPlan> plan_;
  std::shared_ptr<LocalMemory> memory_;
  uint64_t address_ = 0;
  uint32_t key_ = 0;
  uint64_t far_address_ = 0;
  uint32_t far_key_ = 0;
  CompletionQueue send_cq_{0}, receive_cq_{0};
  std::vector<Pair> pairs_;
  uint64_t originals_ = 0;  // the sum of what atomics found
  FlowReport report_;       // of what has arrived until now
  std::function<void(FlowReport)> tell_;
  Event poll_, finish_;
  bool open_ = false, running_ = false;
};

}  // namespace rocefs
