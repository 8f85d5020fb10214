// Responder: the receiving half of a queue pair. It takes request packets, asks memory to place
// their payload, and reports what is placed: to the near end by completions, to the far end of a
// reliable connection by acknowledgements. Sans-IO. responder_state.h has the diagram of its
// states.
//
// Packets that wait for memory wait in steps, which are taken in the order in which the packets
// came: so nothing is reported before everything ahead of it is placed, and a READ sees the WRITEs
// before it.
//
// Packets ahead of the expected PSN are dropped, and a NAK asks for it and all behind it (go back
// n). With selective retransmission they are kept until their turn, a WRITE's bytes being placed at
// once where memory answers at once, and a NAK asks for each missing PSN alone. Core thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/loop/scheduler.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"
#include "rdma/packet/work_queue.h"
#include "rdma/transport/congestion.h"
#include "rdma/transport/congestion_echo.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/psn_ranges.h"
#include "rdma/transport/qp_context.h"
#include "rdma/transport/reorder_buffer.h"
#include "rdma/transport/responder_resources.h"
#include "rdma/transport/responder_state.h"
#include "rdma/transport/selective.h"

namespace rocefs {

// ArrivalListener: hears that a queue pair has a message in its place. Called while a packet is
// processed: it may only take note.
class ArrivalListener {
 public:
  virtual void message_arrived() = 0;

 protected:
  ~ArrivalListener() = default;
};

class Responder final : public MemoryListener {
 public:
  Responder(QpContext& qp, Congestion& congestion);
  ~Responder() override;

  // Called at the transition to RTR.
  void start(uint32_t psn);
  // At most one, which outlives the queue pair.
  void set_listener(ArrivalListener& listener) { listener_ = &listener; }

  // Handles a request packet that the port has checked.
  void receive(PacketPtr&& packet, const wire::Transport& headers);
  // Emits the acknowledge packet that is due; null if none is.
  PacketPtr emit_acknowledge();
  // Emits the next packet of a READ's or atomic's response; null if none is due now.
  PacketPtr emit_response();
  bool owes_response() const { return !resources_.empty(); }
  ResponderState state() const { return state_; }
  // Expected PSN: it grows as requests come.
  uint64_t expected() const { return expected_psn_; }
  // Asks the CPU for what each request packet reads: up to the first entry of message_.target.
  void prefetch() const { prefetch_lines(this, 4); }
  // Asks the CPU for what owes_response() reads.
  void prefetch_owed() const { __builtin_prefetch(&resources_); }
  // Flushes receive requests in the error state. A NAK that is due is still sent, and the responses
  // before it.
  void flush();
  // Returns to the initial state, without completions.
  void reset();

  void memory_done(uint64_t ticket, bool ok) override;
  // Whether memory still works for this QP, which may not be destroyed yet.
  bool memory_pending() const { return pending_steps_ > 0 || resources_.memory_pending(); }
  // READs and atomics for whose answers there is memory.
  size_t kept_requests() const { return resources_.capacity(); }

 private:
  // Verdict on an arriving packet, the action that it asks for, and the step in which it waits. A
  // refusal becomes a NAK where the service has NAKs.
  enum class Verdict { kAccept, kDrop, kRefuse };
  enum class Action : uint8_t { kNone, kRead, kAtomic };
  struct Step {
    PacketPtr packet;  // kept while its payload is being placed
    uint64_t psn = 0;
    uint64_t psns = 1;
    uint32_t pending = 0;  // answers that memory owes
    bool failed = false;
    bool begins = false;  // a message begins
    bool forgotten = false;
    bool write = false;
    bool acknowledge = false;
    bool message_end = false;
    bool consumes_receive = false;
    bool solicited = false;
    bool invalidates = false;
    bool unanswered = false;  // fails, and the far end is not told
    uint8_t nak = 0;          // a syndrome instead of an acknowledgement
    Action action = Action::kNone;
    bool executed = false;
    uint32_t slot = 0;  // slot of the READ or atomic
    Completion completion;
  };
  // The message that is being received.
  struct Message {
    bool active = false;
    bool write = false;
    uint32_t pd = 0;          // of the memory that it may reach
    uint32_t srqn = 0;        // XRC: the SRQ that it names
    uint32_t receive_pd = 0;  // of the receive's memory
    uint64_t remaining = 0;   // bytes that have room or, of a WRITE, that are to come
    uint64_t received = 0;    // bytes so far
    uint64_t receive_id = 0;
    SgeList target;
  };

  struct DueNak {
    uint8_t syndrome;
    uint64_t psn;
  };

  // State of packets ahead of the expected PSN.
  struct OutOfOrder {
    explicit OutOfOrder(Responder& responder);
    ReorderBuffer packets;
    MissingPsns missing;
    uint64_t top = 0;     // one past the highest PSN that has come
    PsnRanges to_nak;     // PSNs to send NAKs for
    TimeNs next_nak = 0;  // time from which the next NAK may go
    Event timer;
    Event nak_timer;

    // Whether nothing is kept or missing: a packet in order changes nothing here.
    bool idle() const { return packets.empty() && missing.empty(); }
  };

  // responder.cc
  void receive_reliable(PacketPtr&& packet, const wire::Transport& headers);
  void receive_connected(PacketPtr&& packet, const wire::Transport& headers);
  void receive_datagram(PacketPtr&& packet, const wire::Transport& headers);
  void accept(PacketPtr&& packet, const wire::Transport& headers, Step& step);
  void handle_expected(PacketPtr&& packet, const wire::Transport& headers);
  void handle_duplicate(const wire::Transport& headers, uint64_t psn);
  void handle_gap(PacketPtr&& packet, const wire::Transport& headers, uint64_t psn);
  void request_all();
  void abandon_message();
  void add_step(Step& step);
  void complete_steps();
  bool execute(Step& step);
  void complete_step(Step& step);
  void count_write() { qp_.port().counters().rx_write_requests.add(); }
  // Notes that a whole message is in its place.
  void count_message() {
    messages_ = (messages_ + 1) & 0xffffff;
    if (listener_) listener_->message_arrived();
  }
  void settle(Step& step);
  void refuse_read(uint64_t psn);
  void flush_one(uint64_t wr_id);
  void report_flushed(Completion completion);
  void leave_receive();
  CompletionSink* receive_cq(const Completion& completion);

  // header_prediction.cc
  bool take_predicted(const Packet& packet, const wire::Transport& headers);

  // out_of_order.cc
  bool selective() const;
  void buffer_out_of_order(PacketPtr&& packet, const wire::Transport& headers, uint64_t psn);
  bool place_early(Packet& packet, const wire::Transport& headers, uint64_t psn);
  void note_received(uint64_t psns);
  void deliver_in_order();
  void send_missing_naks(TimeNs now);
  void drop_out_of_order();
  void on_missing_timer(TimeNs now);
  void on_nak_timer(TimeNs) { qp_.make_acknowledge_ready(); }
  bool may_nak(TimeNs now);
  PacketPtr emit_selective_nak();

  // request_check.cc
  Verdict check_request(const Packet& packet, const wire::Transport& headers, Step& step);
  Verdict choose_queue(const wire::Transport& headers, Step& step);
  ReceiveQueue* receives();
  Mover receive_mover() { return qp_.mover(*this, kLocalWrite, message_.receive_pd); }
  bool supports(const wire::OpcodeInfo& info) const;
  Verdict check_message(const Packet& packet, const wire::Transport& headers, Step& step);
  Verdict check_with_receive(const Packet& packet, const wire::Transport& headers, Step& step);
  Verdict begin_message(const Packet& packet, const wire::Transport& headers, Step& step);
  Verdict begin_write(const wire::Reth& reth, Step& step);
  Verdict begin_send(Step& step);
  Verdict begin_read(const wire::Reth& reth, Step& step);
  Verdict begin_atomic(const Packet& packet, const wire::Transport& headers, Step& step);
  Verdict take_receive(Step& step, ReceiveRequest& receive);
  Verdict check_length(const wire::Transport& headers, const wire::OpcodeInfo& info, Step& step);
  Verdict refuse(Step& step, uint8_t syndrome);
  void place(Packet& packet, Step& step);
  void place_grh(const Packet& packet, Step& step);
  void finish_message(const wire::Transport& headers, const wire::OpcodeInfo& info, Step& step);
  void end_receive(Step& step, WcStatus status);

  QpContext& qp_;
  uint64_t expected_psn_ = 0;  // expected PSN
  uint64_t acknowledged_ = 0;  // PSN of the newest SEND or WRITE that is placed
  uint32_t messages_ = 0;      // MSN, 24 bits
  ResponderState state_ = ResponderState::kInOrder;
  bool acknowledge_due_ = false;
  bool doomed_ = false;        // a fatal refusal waits for its turn: nothing is judged any more
  bool message_bad_ = false;   // memory has refused a part of the message in completion
  bool placed_early_ = false;  // the current packet's payload is in its place already
  Agreement agreement_;
  uint32_t pending_steps_ = 0;
  ArrivalListener* listener_ = nullptr;
  std::unique_ptr<OutOfOrder> ooo_;  // made when the first packet is kept
  CongestionEcho echo_;
  WorkQueue<Step> steps_;  // a step's position is its ticket
  std::optional<DueNak> nak_due_;
  Message message_;

  std::optional<ReceiveRequest> reusable_receive_;  // left by a lost message, for the next one
  uint64_t reusable_after_ = 0;                     // end of the steps of that message
  uint64_t original_ = 0;  // old value, which memory writes for the current atomic
  ResponderResources resources_;
};

}  // namespace rocefs
