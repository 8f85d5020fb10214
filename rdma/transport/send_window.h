// SendWindow: the send queue of a queue pair and the PSNs of its packets: acknowledged, in flight,
// and to be sent next.
//
//   send queue   head() ............... cursor() .............. tail()
//   PSNs         unacked() ............ next()    ... max_sent()
//
// PSNs are unwrapped to 64 bits; the wire carries the low 24. After going back next() is below
// max_sent(). Core thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/prefetch.h"
#include "rdma/packet/operations.h"
#include "rdma/packet/verbs.h"
#include "rdma/packet/work_queue.h"
#include "rdma/transport/qp_context.h"
#include "rdma/transport/requester_state.h"

namespace rocefs {

// A send request in the queue.
struct SendWqe {
  uint64_t length = 0;
  uint64_t first_psn = 0;
  uint64_t first_octet = 0;  // position among all octets that requests send
  uint64_t packets = 0;      // PSNs: of a READ those of its responses; 0 if local
  bool begun = false;
  // Some octets of one SGE, which wait for no other request: an ACK answers them.
  bool plain = false;
  uint8_t traits = 0;  // of the operation
  WcStatus failure = WcStatus::kSuccess;
  uint32_t placing = 0;    // RC: parts of the response that memory is taking
  uint32_t in_flight = 0;  // UC, UD: packets in flight
  SendRequest request;

  uint64_t end_psn() const { return first_psn + packets; }
  bool has(uint8_t some) const { return traits & some; }
  bool sends_payload() const { return has(ROCEFS_PAYLOAD); }
  bool awaits_response() const { return has(ROCEFS_READ_RESPONSE | ROCEFS_ATOMIC_RESPONSE); }
  bool takes_data() const { return awaits_response() && !sends_payload(); }
  bool is_local() const { return has(ROCEFS_LOCAL); }  // no packet is transmitted
};

class SendWindow {
 public:
  static constexpr uint32_t kNoLimit = ~0u;

  SendWindow(QpContext& qp, size_t depth) : qp_(qp), queue_(depth) {}
  ~SendWindow();

  RequesterState state = RequesterState::kSending;

  // Called at the transition to RTS.
  void start(uint32_t psn);
  // The send queue must have room.
  void push(const SendRequest& request);
  // Removes the oldest request, which has ended.
  void pop();
  // Forgets all requests.
  void clear();

  bool empty() const { return queue_.empty(); }
  bool full() const { return queue_.full(); }
  size_t size() const { return queue_.size(); }
  uint64_t head() const { return queue_.head(); }
  uint64_t tail() const { return queue_.tail(); }
  bool holds(uint64_t position) const { return queue_.holds(position); }
  SendWqe& at(uint64_t position) { return queue_.at(position); }
  const SendWqe& at(uint64_t position) const { return queue_.at(position); }
  SendWqe& front() { return queue_.front(); }

  // The position of the request that next() belongs to; tail() when all is sent.
  uint64_t cursor() const { return cursor_; }
  bool at_end() const { return cursor_ == queue_.tail(); }
  SendWqe& current() { return queue_.at(cursor_); }
  // Asks the CPU for what a packet of current() reads.
  void prefetch_current() const {
    if (!at_end()) prefetch_two_lines(&queue_.at(cursor_));
  }

  uint64_t unacked() const { return unacked_psn_; }
  uint64_t next() const { return next_psn_; }
  uint64_t max_sent() const { return max_sent_psn_; }
  // Whether an answer to this PSN is awaited.
  bool awaits(uint64_t psn) const { return psn - unacked_psn_ < max_sent_psn_ - unacked_psn_; }
  // Whether no packet is in flight; after going back there may be late answers.
  bool none_in_flight() const { return unacked_psn_ >= next_psn_; }
  // READs and atomics in the queue that have begun; those among them before the cursor.
  uint32_t rd_atomics_begun() const { return rd_atomics_begun_; }
  uint32_t rd_atomics_sent() const { return rd_atomics_sent_; }

  // Packets that may be in flight: the queue pair's window, as many as the far end can take, or
  // less after time-outs.
  uint32_t limit() const { return std::min({qp_.attributes().window, reach_, limit_}); }
  // Sets the number of packets that the far end can take.
  void set_reach(uint32_t packets) { reach_ = packets; }
  // Notes a time-out without progress since the last one: sends less at a time from now on.
  void shrink() { limit_ = std::max(1u, limit() / 4); }
  // Notes progress.
  void grow() { limit_ = limit_ < kNoLimit / 2 ? 2 * limit_ : kNoLimit; }

  // Gives the current request its PSNs.
  void begin();
  // Passes over the current request, which needs no packet.
  void skip() { ++cursor_; }
  // Moves past an emitted packet of the current request, the only one of a READ or atomic. Returns
  // whether it was the request's last.
  bool packet_sent();
  // Goes back: makes `psn`, between unacked() and max_sent(), the next to be sent.
  void rewind(uint64_t psn);
  // Notes that all PSNs before `psn` are answered.
  void acknowledge(uint64_t psn) { unacked_psn_ = psn; }

  // The position of the request that an unanswered PSN belongs to.
  uint64_t position_of(uint64_t psn) const;
  // `psn`, or the first PSN before it that only a response with data can answer.
  uint64_t answerable_before(uint64_t psn) const;
  // Octets that requests have sent before this PSN, which is one of the request's; a READ or an
  // atomic sends none.
  uint64_t octets_before(const SendWqe& wqe, uint64_t psn) const;
  // Octets of requests before the next packet, and before the first that is not acknowledged.
  uint64_t octets_sent() const;
  uint64_t octets_acknowledged() const;
  // Octets sent and not acknowledged, when `wqe` is the current request.
  uint64_t octets_in_flight(const SendWqe& wqe) const;
  // Length of the payload of a request's packet that begins with this octet.
  uint32_t payload_length(const SendWqe& wqe, uint64_t offset) const;
  // Whether the oldest request is sent and answered.
  bool front_done() const;
  // Whether no request that has begun is still under way.
  bool drained() const { return queue_.empty() || !queue_.at(queue_.head()).begun; }

 private:
  QpContext& qp_;
  WorkQueue<SendWqe> queue_;
  uint64_t unacked_psn_ = 0;
  uint64_t next_psn_ = 0;
  uint64_t max_sent_psn_ = 0;
  uint64_t cursor_ = 0;
  uint64_t octets_begun_ = 0;
  uint32_t rd_atomics_begun_ = 0;
  uint32_t rd_atomics_sent_ = 0;
  uint32_t limit_ = kNoLimit;
  uint32_t reach_ = kNoLimit;
};

}  // namespace rocefs
