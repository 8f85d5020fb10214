// HalfFlow: the end of a flow that is in this mount when the other one is in another, behind an
// uplink. The near end posts the requests, the far end has what they need: memory, receive
// requests. What the ends must know of each other is an EndpointInfo, and travels by a rendezvous.
//
// Strangers may have a far end: what it looks at it looks at piece by piece, so that nobody else's
// packets wait for long; what they READ is made up when they do; and it ends when nothing comes.
//
// On the core's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "rdma/traffic/endpoint_info.h"
#include "rdma/traffic/flow.h"

namespace rocefs {

class HalfFlow final : public FlowRun, public DeviceClient {
 public:
  struct Parts {
    Fabric& fabric;
    FlowSpec spec;  // of both ends the same but for `from`, the port of this one
    QpOwner owner;
    std::shared_ptr<FlowStats> stats;
    std::shared_ptr<LocalMemory> input;  // a file that leaves from here; null: there is none
    std::optional<uint64_t> file;        // bytes of the file that arrives or leaves here
    uint64_t seed;                       // of what is made up, the same at both ends
    bool near;
    Ip local, remote;
    // Once at most, and not from within a call: the near end has all its completions, or an end
    // fails.
    std::function<void(Result<void>)> ended;
    // Takes the memory at the end: to give back much of it takes a while. Null: nobody does.
    std::function<void(std::shared_ptr<LocalMemory>)> discard;
  };
  static constexpr uint64_t kPiece = 1 << 20;  // octets of messages, at an event
  static constexpr uint32_t kQpsAtOnce = 64;
  static constexpr TimeNs kPieceTime = kMillisecond;  // from one to the next
  static constexpr TimeNs kIdle = 120 * kSecond;      // until a far end to which nothing comes ends
  explicit HalfFlow(Parts parts);
  ~HalfFlow() override;

  // Near end: makes the queue pairs; says what the other end must know.
  Result<EndpointInfo> open();
  // Near end: joins them to the other end's and begins. EINVAL for what the other end says and
  // cannot be.
  Result<void> connect(const EndpointInfo& other);
  // Far end: makes the memory, then queue pairs, joined to the near end's. `ready` runs once, not
  // from within this call, unless the flow ends before: with what the near end must know. EINVAL as
  // above.
  using Ready = std::function<void(Result<EndpointInfo>)>;
  Result<void> serve(EndpointInfo near, Ready ready);
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
  Result<void> begin(std::optional<uint64_t> file);
  Result<void> make_qp();
  Result<void> make_memory();
  Result<void> meet(const EndpointInfo& other);
  Result<void> bring_up(uint32_t pair, const FlowQp& other);
  void run();
  EndpointInfo own_end() const;
  AddressVector path() const;
  void post_more(uint32_t pair);
  void post_receives(uint32_t pair);
  SendRequest request_of(uint32_t pair, uint64_t position) const;
  void on_completions(TimeNs now);
  bool take_send(const Completion& completion);
  void take_receive(const Completion& completion, bool whole);
  void take_answer(const FlowPlan::Slot& slot, uint64_t message);
  void on_prepare(TimeNs now);
  Result<bool> prepare_some();
  void on_finish(TimeNs now);
  void on_idle(TimeNs now);
  bool work_on(uint64_t& budget);
  bool take_arrived(uint64_t& budget);
  FlowReport report_of_all();
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
  uint64_t draw_ = 0;  // of PSNs
  uint32_t mtu_ = 0;
  uint64_t far_address_ = 0;
  uint32_t far_key_ = 0;
  CompletionQueue send_cq_{0}, receive_cq_{0};
  std::vector<Pair> pairs_;
  uint64_t originals_ = 0;  // the sum of what atomics found
  FlowReport report_;       // of what has arrived until now
  std::function<void(FlowReport)> tell_;
  EndpointInfo near_;    // as the far end knows it
  uint32_t joined_ = 0;  // queue pairs of the far end
  Ready ready_;
  std::deque<Completion> arrived_;  // receive requests, whose bytes are still to be looked at
  // Where the work on messages is: of the first of arrived_, or of those that WRITEs left.
  struct {
    uint32_t pair = 0;
    uint64_t message = 0;  // of those of the pair
    uint64_t offset = 0;
    bool whole = true;  // so far
  } at_;
  uint64_t mismatched_ = 0;  // of all that lie in memory
  uint64_t progress_ = 0;    // of the far end, when it was looked at
  TimeNs progressed_ = 0;
  Event poll_, prepare_, finish_, idle_;
  bool open_ = false, running_ = false;
};

}  // namespace rocefs
