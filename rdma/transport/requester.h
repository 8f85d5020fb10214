// Requester: the sending half of a queue pair. It takes send requests and emits their packets when
// the port asks for one. Sans-IO: responses and deadlines come in, completions go out.
//
// Parts, each in a file of its own:
//   SendWindow       the send queue and its PSNs
//   AckRequests      the choice of packets that ask for an acknowledgement
//   SelectiveRepeat  retransmission of single packets, where both ends agree
//   GoBackN          retransmission of everything from a PSN on
//   Completer        responses, deadlines, retries, completions
// The state is in the window; requester_state.h has its diagram. A queue pair of UC or UD has the
// same parts: its requests complete when their last packet has been delivered or dropped.
// Core thread.
#pragma once

#include <cstdint>

#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"
#include "rdma/transport/ack_requests.h"
#include "rdma/transport/completer.h"
#include "rdma/transport/go_back_n.h"
#include "rdma/transport/prefetch.h"
#include "rdma/transport/selective_repeat.h"
#include "rdma/transport/send_window.h"

namespace rocefs {

class Requester final : public MemoryListener {
 public:
  Requester(QpContext& qp, Congestion& congestion, size_t depth);

  // Called at the transition to RTS.
  void start(uint32_t psn);
  RequesterState state() const { return window_.state; }
  bool full() const { return window_.full(); }
  // ENOMEM when the send queue is full. The QP has checked everything else.
  Result<void> post(const SendRequest& request);

  // Requests in the send queue.
  size_t queued() const { return window_.size(); }
  // Whether there are packets to be sent.
  bool has_more() const { return !window_.at_end() || selective_.has_retransmissions(); }
  // Emits the next packet that may be sent now; null when there is none, until the QP is made
  // ready.
  PacketPtr emit(TimeNs now);
  // Handles a response that the port has checked (RC).
  void receive_response(PacketPtr&& packet, const wire::Transport& headers, TimeNs now) {
    completer_.receive_response(std::move(packet), headers, now);
  }
  // Begins no further request until the queue pair is back in RTS.
  void drain();
  // Whether no request that has begun is still under way.
  bool drained() const { return window_.drained(); }
  // Notes that a packet of the request at this position has been delivered or dropped (UC, UD).
  // `position`: its low bits.
  void packet_gone(uint32_t position);
  // Ends queued requests with kFlushed.
  void flush();
  // Drops queued requests without completions.
  void reset();

  void memory_done(uint64_t ticket, bool ok) override;
  // Whether memory still works for this QP, which may not be destroyed yet.
  bool memory_pending() const {
    return prefetch_.pending() || completer_.memory_pending() || selective_.memory_pending();
  }

  // Asks the CPU for what each packet and its acknowledgement read: up to prefetch_, and the first
  // two lines of the completer.
  void prefetch() const {
    prefetch_lines(this, 5);
    prefetch_two_lines(&completer_);
  }
  // Asks the CPU for the request that the next packet belongs to.
  void prefetch_current() const { window_.prefetch_current(); }
  uint64_t packets_sent() const { return packets_sent_; }
  uint64_t packets_resent() const { return packets_resent_; }
  uint64_t timeouts() const { return completer_.timeouts(); }

 private:
  // PSNs from `psn` up to `end` of a READ; the packet `psn` of another request.
  struct Part {
    uint64_t psn, end;
    bool acknowledge;
  };

  PacketPtr emit_new(TimeNs now);
  PacketPtr emit_retransmission(TimeNs now);
  bool may_begin(const SendWqe& wqe) const;
  bool may_send(const SendWqe& wqe, TimeNs now);
  bool window_allows(const SendWqe& wqe, uint32_t window);
  bool begin(const SendWqe& wqe);
  WcStatus check(const SendWqe& wqe);
  bool run_local(const SendWqe& wqe);
  // Not inlined into the port's loop, which would run out of registers.
  [[gnu::noinline]] PacketPtr build(const SendWqe& wqe, TimeNs now);
  PacketPtr take_payload(const SendWqe& wqe);
  PacketPtr refer(const SendWqe& wqe, uint64_t offset);
  void fill_extensions(const SendWqe& wqe, const wire::OpcodeInfo& info, const Part& part,
                       wire::Extensions& out);
  void write_headers(const SendWqe& wqe, const Part& part, Packet& packet, TimeNs now);
  void sent(Packet& packet, TimeNs now);
  Moved fetch(const SendWqe& wqe, uint64_t offset, Packet& packet);
  void fetch_more();
  void fail_current(WcStatus status);

  QpContext& qp_;
  Congestion& congestion_;
  uint64_t packets_sent_ = 0;
  uint64_t packets_resent_ = 0;
  SendWindow window_;
  AckRequests ack_requests_;
  SelectiveRepeat selective_;
  Prefetch prefetch_;
  Prefetch::Key prefetch_at_;  // next packet to be fetched
  GoBackN go_back_n_;
  Completer completer_;
};

}  // namespace rocefs
