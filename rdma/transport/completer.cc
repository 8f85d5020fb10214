// The completer: what responses and deadlines do to the send queue of a reliable connection.
#include <algorithm>
#include <cstring>

#include "rdma/transport/qp.h"
#include "rdma/transport/requester.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

constexpr uint8_t kInfiniteRetry = 7;  // rnr_retry

}  // namespace

void Requester::receive_response(Packet* packet, const wire::Transport& headers, TimeNs now) {
  agreement_.heard(headers.reserved6());
  choose_recovery();
  bool selective_nak = (headers.reserved7() & kSelectiveNak) &&
                       headers.opcode() == wire::Opcode::kRcAck &&
                       headers.aeth().syndrome == aeth::kNakSequence;
  if (selective_nak) {
    handle_selective_nak(unwrap_psn(headers.aeth().msn, unacked_psn_), now);
    return qp_.host().pool().release(packet);
  }
  uint64_t psn = unwrap_psn(headers.psn(), unacked_psn_);
  // Outside what is unacknowledged it is old, or a ghost: it says nothing.
  bool awaited = qp_.sends() && !doomed_ && psn - unacked_psn_ < max_sent_psn_ - unacked_psn_;
  if (awaited && headers.opcode() != wire::Opcode::kRcAck) {
    return handle_response(packet, headers, psn, now);
  }
  if (awaited) handle_ack(headers.aeth().syndrome, psn, now);
  qp_.host().pool().release(packet);
}

void Requester::handle_ack(uint8_t syndrome, uint64_t psn, TimeNs now) {
  switch (aeth::kind_of(syndrome)) {
    case aeth::Kind::kAck: {
      bool progress = acknowledge_before(psn + 1, now);
      if (selective_mode_) {
        if (qp_.sends() && !doomed_) note_beyond(psn + 1, now);
      } else if (qp_.sends() && unacked_psn_ <= psn) {
        return handle_implied_nak(progress, now);
      }
      if (progress) qp_.make_data_ready();
      return;
    }
    case aeth::Kind::kRnr:
      return handle_rnr_nak(psn, aeth::value_of(syndrome), now);
    case aeth::Kind::kNak:
      if (syndrome == aeth::kNakSequence) return handle_sequence_nak(psn, now);
      return handle_fatal_nak(psn, syndrome, now);
    case aeth::Kind::kMalformed:
      return qp_.port().counters().port_rcv_errors.add();
  }
}

// A retry, unless there was progress. False when none is left.
bool Requester::use_retry() {
  if (retries_left_ > 0) {
    --retries_left_;
    return true;
  }
  qp_.port().counters().req_transport_retries_exceeded.add();
  fail_at(position_of(unacked_psn_), WcStatus::kRetryExceeded);
  return false;
}

// A sequence NAK acknowledges all before its PSN and counts as a retry.
void Requester::handle_sequence_nak(uint64_t psn, TimeNs now) {
  qp_.port().counters().packet_seq_err.add();
  bool progress = acknowledge_before(psn, now);
  if (!qp_.sends() || doomed_) return;
  if (!progress && !use_retry()) return;
  rewind(unacked_psn_);
  arm_timer(now);
}

// An answer to something later says that the response to a READ or atomic was lost. One such answer
// counts: those that follow it were under way already.
void Requester::handle_implied_nak(bool progress, TimeNs now) {
  if (progress) implied_nak_seen_ = false;
  if (doomed_ || implied_nak_seen_ || next_psn_ <= unacked_psn_) return;
  qp_.port().counters().implied_nak_seq_err.add();
  if (!progress && !use_retry()) return;
  implied_nak_seen_ = true;
  rewind(unacked_psn_);
  arm_timer(now);
}

void Requester::handle_rnr_nak(uint64_t psn, uint8_t timer, TimeNs now) {
  qp_.port().counters().rnr_nak_retry_err.add();
  acknowledge_before(psn, now);
  if (!qp_.sends() || doomed_) return;
  if (rnr_retries_left_ == 0) {
    qp_.port().counters().req_rnr_retries_exceeded.add();
    return fail_at(position_of(unacked_psn_), WcStatus::kRnrRetryExceeded);
  }
  if (qp_.attributes().rnr_retry != kInfiniteRetry) --rnr_retries_left_;
  rewind(unacked_psn_);
  rnr_waiting_ = true;
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().at(rnr_timer_, now + rnr_timer_ns(timer));
}

void Requester::on_rnr_wait_over(TimeNs) {
  rnr_waiting_ = false;
  qp_.make_data_ready();
}

void Requester::handle_fatal_nak(uint64_t psn, uint8_t syndrome, TimeNs now) {
  bool progress = acknowledge_before(psn, now);
  if (!qp_.sends() || doomed_) return;
  bool answers_oldest = position_of(unacked_psn_) == position_of(psn);
  if (!answers_oldest) return handle_implied_nak(progress, now);
  PortCounters& counters = qp_.port().counters();
  WcStatus status = WcStatus::kRemoteOperationError;
  if (syndrome == aeth::kNakInvalidRequest) {
    counters.req_remote_invalid_request.add();
    status = WcStatus::kRemoteInvalidRequest;
  } else if (syndrome == aeth::kNakRemoteAccess) {
    counters.req_remote_access_errors.add();
    status = WcStatus::kRemoteAccessError;
  }
  fail_at(position_of(psn), status);
}

// It ends when all before it have; nothing more is sent.
void Requester::fail_at(uint64_t position, WcStatus status) {
  doomed_ = true;
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  queue_.at(position).failure = status;
  complete_finished();
}

// A response is of no use. Nothing more is sent, unless what is missing before the request must be
// asked for: then it ends when those have ended.
void Requester::note_failure(Wqe& wqe, WcStatus status) {
  wqe.failure = status;
  doomed_ |= wqe.first_psn <= unacked_psn_;
}

// The queue position of the request that an unanswered PSN belongs to.
uint64_t Requester::position_of(uint64_t psn) {
  uint64_t position = queue_.head();
  while (queue_.at(position).end_psn() <= psn) ++position;
  return position;
}

// `psn`, or the first PSN before it that only data can answer.
uint64_t Requester::answerable_before(uint64_t psn) {
  if (rd_atomics_begun_ == 0) return psn;
  for (uint64_t at = queue_.head(); at != queue_.tail(); ++at) {
    const Wqe& wqe = queue_.at(at);
    if (!wqe.begun || wqe.first_psn >= psn) break;
    if (wqe.awaits_response() && wqe.end_psn() > unacked_psn_) {
      return std::min(psn, std::max(wqe.first_psn, unacked_psn_));
    }
  }
  return psn;
}

bool Requester::acknowledge_before(uint64_t psn, TimeNs now) {
  if (selective_mode_) {
    selective_->acknowledged = std::max(selective_->acknowledged, psn);
    return advance(now);
  }
  psn = answerable_before(psn);
  if (psn <= unacked_psn_) return false;
  unacked_psn_ = psn;
  note_progress(now);
  return true;
}

void Requester::note_progress(TimeNs now) {
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
  implied_nak_seen_ = false;
  qp_.congestion().acknowledged(unacked_psn_, now);
  // After going back, more can be acknowledged than was sent again.
  if (next_psn_ < unacked_psn_) rewind(unacked_psn_);
  complete_finished();
  if (!qp_.sends() || doomed_) return;
  if (unacked_psn_ == max_sent_psn_) {
    deadline_ = kNever;  // the event finds that there is nothing to wait for
  } else {
    arm_timer(now);
  }
}

// A READ response or an atomic's: it acknowledges all before it. Takes the packet.
void Requester::handle_response(Packet* packet, const wire::Transport& headers, uint64_t psn,
                                TimeNs now) {
  if (selective_mode_) return handle_out_of_order_response(packet, headers, psn, now);
  PacketPool& pool = qp_.host().pool();
  bool progress = acknowledge_before(psn, now);
  if (!qp_.sends() || doomed_) return pool.release(packet);
  if (unacked_psn_ < psn) {
    qp_.note_gap(psn - unacked_psn_);
    handle_implied_nak(progress, now);
    return pool.release(packet);
  }
  if (placing() == kMaxPlacements) return pool.release(packet);
  uint64_t position = position_of(psn);
  if (!fits(queue_.at(position), headers, psn)) {
    fail_at(position, WcStatus::kBadResponse);
    return pool.release(packet);
  }
  place(packet, headers, position, psn);
  unacked_psn_ = psn + 1;
  note_progress(now);
  if (qp_.sends()) qp_.make_data_ready();
}

// Whether this is the response that the request awaits at this PSN.
bool Requester::fits(const Wqe& wqe, const wire::Transport& headers, uint64_t psn) {
  const wire::OpcodeInfo& info = headers.info();
  if (info.has_aeth && aeth::kind_of(headers.aeth().syndrome) != aeth::Kind::kAck) {
    return false;
  }
  if (info.has_atomic_ack_eth) {
    return wqe.is_atomic();
  }
  uint64_t mtu = qp_.attributes().path_mtu;
  uint64_t offset = (psn - wqe.first_psn) * mtu;
  bool last = psn + 1 == wqe.end_psn();
  // A part that was asked for alone has an end of its own.
  bool ends = info.last || info.only;
  return wqe.request.op == SendOp::kRead && (ends == last || (ends && selective_)) &&
         headers.payload_len() == std::min(mtu, wqe.length - offset);
}

// Asks memory to take the data. Takes the packet.
void Requester::place(Packet* packet, const wire::Transport& headers, uint64_t position,
                      uint64_t psn) {
  PacketPool& pool = qp_.host().pool();
  Wqe& wqe = queue_.at(position);
  uint64_t offset = (psn - wqe.first_psn) * qp_.attributes().path_mtu;
  if (free_placements_.empty()) {
    free_placements_.push_back(placements_.size());
    placements_.emplace_back();
  }
  uint64_t slot = free_placements_.back();
  Moved moved;
  std::span<const Sge> entries = wqe.request.sges.entries();
  if (headers.opcode() == wire::Opcode::kRcAtomicAck) {
    uint64_t original = headers.atomic_ack().original;
    uint8_t* bytes = pool.attach_frame(packet)->bytes.data();
    std::memcpy(bytes, &original, sizeof original);
    moved = scatter(qp_.mover(*this, kLocalWrite), entries, 0, {bytes, sizeof original}, slot);
  } else {
    moved = scatter_payload(qp_.mover(*this, kLocalWrite), entries, offset, packet, slot);
  }
  if (moved.failed) note_failure(wqe, WcStatus::kLocalProtectionError);
  if (moved.pending == 0) return pool.release(packet);
  free_placements_.pop_back();
  placements_[slot] = {packet, position, moved.pending, moved.failed};
  ++wqe.placing;
}

void Requester::placed(uint64_t ticket, bool ok) {
  Placement& placement = placements_[ticket];
  placement.failed |= !ok;
  if (--placement.pending > 0) return;
  qp_.host().pool().release(std::exchange(placement.packet, nullptr));
  free_placements_.push_back(ticket);
  if (!queue_.holds(placement.position)) return;  // the QP has been reset
  Wqe& wqe = queue_.at(placement.position);
  --wqe.placing;
  if (placement.failed) note_failure(wqe, WcStatus::kLocalProtectionError);
  if (qp_.sends()) {
    complete_finished();
  } else {
    flush();
  }
}

// Set anew at each sign of progress. The event stays where it is when the deadline moves away, and
// follows when it fires: acknowledgements are frequent, time-outs rare.
void Requester::arm_timer(TimeNs now) {
  if (rnr_waiting_) return;  // nobody is late: what is sent after the wait arms it
  uint8_t timeout = qp_.attributes().timeout & 31;
  if (timeout == 0) {
    deadline_ = kNever;
    return;
  }
  deadline_ = now + (TimeNs{4096} << timeout);
  if (timer_.due() > deadline_) qp_.scheduler().at(timer_, deadline_);
}

// What is unanswered is sent again, until the retries are used up.
void Requester::on_timeout(TimeNs now) {
  if (deadline_ == kNever) return;
  if (now < deadline_) return qp_.scheduler().at(timer_, deadline_);
  deadline_ = kNever;
  if (doomed_) return;
  ++timeouts_;
  qp_.port().counters().local_ack_timeout_err.add();
  if (!use_retry()) return;
  implied_nak_seen_ = false;
  choose_recovery();
  if (!selective_mode_) return rewind(unacked_psn_);
  send_probe();
  arm_timer(now);
}

}  // namespace rocefs
