// FlowEndpoint: one end of a flow: registered memory, queue pairs, and the requests and completions
// on them, by the same calls that clients use. The near end posts the requests, the far end has the
// memory and the receive requests that they need. Flow joins two endpoints of this mount;
// OutgoingFlow and IncomingFlow join one to an endpoint of another mount.
//
// Core thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rdma/nic/device.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/verbs.h"
#include "rdma/traffic/endpoint_info.h"
#include "rdma/traffic/flow_plan.h"
#include "rdma/traffic/flow_run.h"
#include "rdma/transport/completion_queue.h"

namespace rocefs {

class FlowEndpoint final : private DeviceClient {
 public:
  enum class Side : uint8_t { kNear, kFar };

  // The flow of an endpoint.
  class Handler {
   public:
    // A work request has completed. Called while a packet is processed, may only take note.
    virtual void completion_queued() = 0;
    // A message's request is posted next: its bytes must lie in memory.
    virtual void before_post(uint32_t pair, uint64_t position) = 0;
    // A message's request has completed; more are posted next.
    virtual void after_send(uint32_t pair, uint64_t position) = 0;
    // The device leaves: the endpoint must be closed.
    virtual void device_removed() = 0;

   protected:
    ~Handler() = default;
  };

  // `parts` and `handler` outlive the endpoint.
  FlowEndpoint(Side side, const FlowParts& parts, Handler& handler)
      : side_(side), parts_(parts), handler_(handler), pattern_(parts.seed) {}
  FlowEndpoint(const FlowEndpoint&) = delete;
  FlowEndpoint& operator=(const FlowEndpoint&) = delete;
  ~FlowEndpoint() override { close(); }

  // The steps of a start, in this order but for register_memory() and add_qp(), whose order is
  // free. After an error only close() may follow.

  // EINVAL without such a port, ENODEV without a driver.
  Result<void> open(const std::string& port);
  // The number of messages and their places. Again before register_memory(), for a file whose
  // length only the other end knows.
  void set_plan(const FlowPlan& plan) { plan_ = plan; }
  enum class Contents : uint8_t { kKept, kMadeUp };
  // kMadeUp: nothing is kept, each READ makes up its bytes.
  Result<void> register_memory(Contents contents = Contents::kKept);
  Result<void> add_qp(uint32_t psn);
  // The other end's memory, the way to it, and the path MTU for all queue pairs.
  struct Peer {
    uint64_t address = 0;
    uint32_t key = 0;
    AddressVector path;
    uint32_t mtu = 0;
  };
  void set_peer(const Peer& peer) { peer_ = peer; }
  // The next queue pair goes to RTS.
  Result<void> bring_up(uint32_t pair, const FlowQp& other);
  // From now on the handler hears of completions.
  void listen();
  // Far end: `listener` hears of each message of the queue pairs that there are.
  void hear_arrivals(ArrivalListener& listener) {
    for (const Pair& pair : pairs_) pair.qp->responder().set_listener(listener);
  }

  // Gives all back to the device but the memory. Again is harmless.
  void close();
  // Destroys one queue pair, before close().
  void destroy_qp(uint32_t pair);

  // Near end: posts as many messages as may be under way.
  void post_more(uint32_t pair);
  // Near end: takes completions and posts more. EIO with the status of a request that failed.
  Result<void> take_sends();
  // Far end: posts receive requests for the messages that follow the first `done`.
  void post_receives(uint32_t pair, uint64_t done);
  // Far end: at most as many completions of receive requests as there is room for.
  size_t poll_receives(std::span<Completion> out) { return receive_cq_.poll(out); }
  // Far end: counts the next message that a queue pair has received.
  void take_receive(uint32_t pair, uint32_t length, bool intact);
  // Adds to the stats what a queue pair has done since the last time.
  void account(uint32_t pair);
  // The same of all queue pairs.
  void account();
  // The stats show the rate and window of the first queue pair.
  void publish() { pairs_[0].qp->congestion().publish_to(&parts_.stats->sender); }

  bool is_open() const { return open_; }
  Port& port() const { return *port_; }
  const FlowPlan& plan() const { return plan_; }
  const FlowPattern& pattern() const { return pattern_; }
  // Null before register_memory(), and of made-up contents.
  const std::shared_ptr<LocalMemory>& memory() const { return memory_; }
  std::shared_ptr<LocalMemory> take_memory() { return std::move(memory_); }
  uint64_t address() const { return address_; }
  uint32_t key() const { return key_; }
  std::span<uint8_t> bytes_at(const FlowPlan::Slot& slot) const {
    return memory_->bytes().subspan(slot.offset, slot.length);
  }
  std::span<uint8_t> message(uint32_t pair, uint64_t position) const {
    return bytes_at(plan_.slot(pair, position));
  }
  uint32_t qp_count() const { return static_cast<uint32_t>(pairs_.size()); }
  FlowQp qp(uint32_t pair) const { return {pairs_[pair].qp->number(), pairs_[pair].psn}; }
  uint64_t completed(uint32_t pair) const { return pairs_[pair].completed; }
  uint64_t received(uint32_t pair) const { return pairs_[pair].received; }

  // Whether messages are made up, and checked where they arrive.
  bool makes_up() const;
  void stamp(uint32_t pair, uint64_t position) const {
    pattern_.stamp(message(pair, position), plan_.message_index(pair, position));
  }
  // Near end: whether all atomics together have found each number once.
  bool originals_are_right() const { return originals_ == plan_.originals(); }
  // Far end: whether the number that all atomics add to is right.
  bool sum_is_right() const;
  // Far end: the sum of the PSNs that the responders expect; it grows as requests arrive.
  uint64_t expected_psns() const;
  // Far end: whether responses are on their way.
  bool owes_responses() const;

 private:
  struct Pair {
    Qp* qp = nullptr;
    uint32_t psn = 0;
    uint32_t other_qpn = 0;
    uint64_t posted = 0, completed = 0;                        // messages
    uint64_t receives = 0, received = 0;                       // receive requests
    uint64_t packets = 0, resent = 0, timeouts = 0, cnps = 0;  // already in the stats
  };

  const FlowSpec& spec() const { return parts_.spec; }
  bool near() const { return side_ == Side::kNear; }
  bool reads() const { return spec().op == FlowOp::kRead; }
  // Whether the bytes leave from here.
  bool is_source() const { return near() != reads(); }
  uint8_t access() const;
  void make_queues();
  void take_send(uint32_t pair);
  SendRequest request_of(uint32_t pair, uint64_t position) const;
  void device_removed(Device&) override { handler_.device_removed(); }

  const Side side_;
  const FlowParts& parts_;
  Handler& handler_;
  const FlowPattern pattern_;
  FlowPlan plan_;
  Port* port_ = nullptr;
  bool open_ = false;
  std::shared_ptr<LocalMemory> memory_;
  uint64_t address_ = 0;
  uint32_t key_ = 0;
  Peer peer_;
  CompletionQueue send_cq_{0}, receive_cq_{0};
  std::vector<Pair> pairs_;
  uint64_t originals_ = 0;  // the sum of the numbers that atomics found
};

}  // namespace rocefs
