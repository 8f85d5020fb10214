// Requester: the sending half of a queue pair, and the completer that takes its answers. Sans-IO:
// the port asks for packets, responses and deadlines come in, completions go out.
//
// RC goes back n: after a NAK, an implied NAK or a time-out everything from the missing PSN on is
// sent again; a READ that is half answered is asked for its rest. With selective retransmission
// only what is missing is sent again, and responses may come in any order. UC and UD requests
// complete when their last packet has been delivered or dropped.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/loop/scheduler.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"
#include "rdma/packet/work_queue.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/prefetch.h"
#include "rdma/transport/selective.h"

namespace rocefs {

class Qp;

class Requester final : public MemoryListener {
 public:
  Requester(Qp& qp, size_t depth);
  ~Requester() override;

  // At the transition to RTS.
  void start(uint32_t psn);
  bool full() const { return queue_.full(); }
  // ENOMEM when the send queue is full. The QP has checked the rest.
  Result<void> post(const SendRequest& request);

  // Whether something is queued that has not been sent.
  size_t queued() const { return queue_.size(); }
  bool has_more() const {
    return cursor_ != queue_.tail() || (selective_ && !selective_->retransmissions.empty());
  }
  // The next packet that may be sent now; null when there is none, until the QP is made ready.
  Packet* emit(TimeNs now);
  // RC: a response that the port has checked. Takes the packet.
  void receive_response(Packet* packet, const wire::Transport& headers, TimeNs now);
  // No request begins any more, until the queue pair is back in RTS.
  void drain();
  // UC, UD: a packet of the request at this position has been delivered or dropped.
  void packet_gone(uint64_t position);
  // What is queued ends with kFlushed.
  void flush();
  // What is queued is forgotten.
  void reset();

  // Whether nothing of what has begun is still under way.
  bool drained() const { return queue_.empty() || !queue_.at(queue_.head()).begun; }

  void memory_done(uint64_t ticket, bool ok) override;
  // Whether memory still works for this QP: it may not be destroyed yet.
  bool memory_pending() const {
    return prefetch_.pending() || placing() > 0 || (selective_ && selective_->fetch.pending());
  }

  uint64_t packets_sent() const { return packets_sent_; }
  uint64_t packets_resent() const { return packets_resent_; }
  uint64_t timeouts() const { return timeouts_; }

 private:
  // PSNs are unwrapped to 64 bits inside; the wire carries the low 24.
  struct Wqe {
    uint64_t length = 0;
    uint64_t first_psn = 0;
    uint64_t first_octet = 0;  // of all that requests send
    uint64_t packets = 0;      // PSNs: of a READ those of its responses; none for what is local
    bool begun = false;
    WcStatus failure = WcStatus::kSuccess;
    uint32_t placing = 0;    // RC: parts of its response that memory still takes
    uint32_t in_flight = 0;  // UC, UD: packets
    SendRequest request;
    uint64_t end_psn() const { return first_psn + packets; }
    bool is_atomic() const {
      return request.op == SendOp::kCompareSwap || request.op == SendOp::kFetchAdd;
    }
    bool awaits_response() const { return request.op == SendOp::kRead || is_atomic(); }
    bool is_local() const {  // nothing is transmitted
      return request.op == SendOp::kBindWindow || request.op == SendOp::kLocalInvalidate;
    }
  };
  // A response whose payload memory takes.
  struct Placement {
    Packet* packet = nullptr;
    uint64_t position = 0;
    uint32_t pending = 0;
    bool failed = false;
  };
  // Responses that may wait for memory; what comes beyond them is lost, as it would be in a full
  // NIC.
  static constexpr size_t kMaxPlacements = 4096;
  // Packets of requests that follow each other of which one asks for an acknowledgement.
  static constexpr uint32_t kMaxUnacked = 32;
  static constexpr uint64_t kNoPsn = ~uint64_t{0};
  static constexpr uint64_t kPrefetchTicket = uint64_t{1} << 63;  // and that of Prefetch

  // PSNs from `psn` up to `end` of a READ; of others the packet `psn`.
  struct Part {
    uint64_t psn, end;
    bool acknowledge;
  };
  // What is to be sent again alone: a packet, or a READ for these PSNs of its response.
  struct Retransmission {
    uint64_t psn = 0;
    uint64_t end = 0;
  };
  // Selective retransmission.
  struct SelectiveRepeat {
    explicit SelectiveRepeat(Requester& requester);
    WorkQueue<Retransmission> retransmissions;
    Prefetch fetch;                                       // of the first of them
    std::array<uint64_t, kMaxOutOfOrder / 64> arrived{};  // responses ahead of their turn, by PSN
    MissingPsns missing;                                  // in responses
    uint64_t top = 0;           // what is missing of responses before it is in holes
    uint64_t acknowledged = 0;  // the far end has done all before it, but responses may be missing
    uint64_t recovery = 0;      // what was sent before the last time-out
    uint64_t asked_for = 0;  // the PSN that a NAK or a hole asked for last, when it was the oldest
    TimeNs retry_due = 0;    // when its being asked for again uses a further retry
    uint32_t probes = 0;     // since there was progress
    Event timer;

    bool has(uint64_t psn) const { return arrived[psn % kMaxOutOfOrder / 64] >> psn % 64 & 1; }
    void flip(uint64_t psn) { arrived[psn % kMaxOutOfOrder / 64] ^= uint64_t{1} << psn % 64; }
  };
  static constexpr size_t kMaxRetransmissions = 1024;
  static constexpr uint64_t kRetransmissionTicket = uint64_t{1} << 62;  // beside kPrefetchTicket

  // Responses that memory takes.
  size_t placing() const { return placements_.size() - free_placements_.size(); }

  // requester.cc
  bool may_begin(const Wqe& wqe) const;
  bool may_send(const Wqe& wqe, TimeNs now);
  bool window_allows(const Wqe& wqe, uint32_t window);
  uint64_t octets_before(const Wqe& wqe, uint64_t psn) const;
  uint64_t octets_in_flight(const Wqe& wqe);
  bool begin(Wqe& wqe);
  WcStatus check(const Wqe& wqe);
  bool run_local(const Wqe& wqe);
  Packet* build(const Wqe& wqe, TimeNs now);
  void fill_extensions(const Wqe& wqe, const Part& part, wire::Extensions& out);
  void write_headers(const Wqe& wqe, const Part& part, Packet* packet, TimeNs now);
  Packet* sent(Packet* packet, TimeNs now);
  void rewind(uint64_t psn);
  uint32_t payload_length(const Wqe& wqe, uint64_t offset) const;
  Moved fetch(const Wqe& wqe, uint64_t offset, Packet* packet);
  void fetch_more();
  void fail_at_cursor(WcStatus status);
  void complete_finished();
  void complete_all_finished();
  bool done(const Wqe& wqe);
  void fail_front(WcStatus status);
  void complete_front(WcStatus status);

  // completer.cc
  void handle_ack(uint8_t syndrome, uint64_t psn, TimeNs now);
  void handle_sequence_nak(uint64_t psn, TimeNs now);
  void handle_rnr_nak(uint64_t psn, uint8_t timer, TimeNs now);
  void handle_fatal_nak(uint64_t psn, uint8_t code, TimeNs now);
  void handle_implied_nak(bool progress, TimeNs now);
  void handle_response(Packet* packet, const wire::Transport& headers, uint64_t psn, TimeNs now);
  bool fits(const Wqe& wqe, const wire::Transport& headers, uint64_t psn);
  void place(Packet* packet, const wire::Transport& headers, uint64_t position, uint64_t psn);
  void placed(uint64_t ticket, bool ok);
  // Acknowledges all PSNs before `psn`, but not past a READ or atomic whose answer has not come;
  // whether that was progress.
  bool acknowledge_before(uint64_t psn, TimeNs now);
  void note_progress(TimeNs now);
  uint64_t answerable_before(uint64_t psn);
  uint64_t position_of(uint64_t psn);
  bool use_retry();
  void fail_at(uint64_t position, WcStatus status);
  void note_failure(Wqe& wqe, WcStatus status);
  void on_timeout(TimeNs now);
  void on_rnr_wait_over(TimeNs now);
  void arm_timer(TimeNs now);

  // asking.cc
  bool wants_ack(const Wqe& wqe, TimeNs now);
  bool wants_early_ack(const Wqe& wqe, TimeNs now);
  bool is_followed();
  bool request_ack_again();

  // repair.cc
  bool may_use_selective() const;
  SelectiveRepeat& selective();
  void choose_recovery();
  void drop_retransmissions();
  void reset_selective();
  void handle_selective_nak(uint64_t psn, TimeNs now);
  void handle_out_of_order_response(Packet* packet, const wire::Transport& headers, uint64_t psn,
                                    TimeNs now);
  bool advance(TimeNs now);
  bool has_arrived(uint64_t psn) const;
  uint64_t first_unanswered();
  void note_beyond(uint64_t psn, TimeNs now);
  void request_missing(TimeNs now);
  void request_responses(uint64_t begin, uint64_t end);
  bool is_scheduled(uint64_t psn, uint64_t end);
  void schedule_retransmission(uint64_t psn, uint64_t end);
  void send_probe();
  void retransmit_oldest();
  bool use_retry_for(uint64_t psn, TimeNs now);
  bool trim(Retransmission& next, uint64_t& position);
  Packet* emit_retransmission(TimeNs now);
  Packet* fetch_retransmission(const Wqe& wqe, uint64_t position, uint64_t psn);
  void on_missing_timer(TimeNs now);

  Qp& qp_;
  WorkQueue<Wqe> queue_;
  uint64_t unacked_psn_ = 0;        // the oldest PSN without its answer
  uint64_t next_psn_ = 0;           // the PSN to send next
  uint64_t max_sent_psn_ = 0;       // one past the highest PSN that was ever asked for
  uint64_t cursor_ = 0;             // the queue position that next_psn_ belongs to
  uint64_t octets_begun_ = 0;       // of the requests that have
  uint32_t since_ack_request_ = 0;  // packets since the last one that asked for an acknowledgement
  TimeNs ack_requested_at_ = 0;     // when that was sent, or the first packet of all in flight
  uint64_t last_unacked_end_ = kNoPsn;  // the last of a message, since then
  uint64_t forced_ack_psn_ = kNoPsn;    // sent once more, to ask: what was to follow it does not
  uint32_t rd_atomics_begun_ = 0;       // READs and atomics in the queue that have begun
  uint32_t rd_atomics_sent_ = 0;        // those among them before the cursor
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool rnr_waiting_ = false;
  bool failed_ = false;            // the request at the cursor cannot be sent
  bool doomed_ = false;            // a request has failed for good; it ends when it is the oldest
  bool implied_nak_seen_ = false;  // an implied NAK has been answered, without progress since

  Agreement agreement_;
  bool selective_mode_ = false;                 // acts as is agreed, or may be
  std::unique_ptr<SelectiveRepeat> selective_;  // made when it is first needed

  Prefetch prefetch_;
  Prefetch::Key prefetch_at_;  // what is to be fetched next
  std::vector<Placement> placements_;
  std::vector<uint64_t> free_placements_;

  Event timer_;
  Event rnr_timer_;
  TimeNs deadline_ = kNever;

  uint64_t packets_sent_ = 0;
  uint64_t packets_resent_ = 0;
  uint64_t timeouts_ = 0;
};

}  // namespace rocefs
