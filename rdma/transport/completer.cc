#include "rdma/transport/completer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

constexpr uint8_t kInfiniteRetry = 7;  // rnr_retry

// After progress: what waited for the window may go. A queue pair without data stays out of the
// port's list, which its destruction would have to search.
void go_on(QpContext& qp) {
  if (qp.has_data()) qp.make_data_ready();
}

}  // namespace

Completer::Completer(QpContext& qp, SendWindow& window, SelectiveRepeat& selective,
                     GoBackN& go_back_n, Congestion& congestion)
    : qp_(qp),
      window_(window),
      selective_(selective),
      go_back_n_(go_back_n),
      congestion_(congestion),
      timer_(event_of<&Completer::on_timeout>(this)),
      rnr_timer_(event_of<&Completer::on_rnr_wait_over>(this)) {}

void Completer::start() {
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
}

void Completer::receive_response(PacketPtr&& packet, const wire::Transport& headers, TimeNs now) {
  bool told = congestion_.events().wanted() && headers.operation() == wire::Opcode::kRcAck;
  if (told) return receive_told(std::move(packet), headers, now);
  take_response(std::move(packet), headers, now);
}

void Completer::take_response(PacketPtr&& packet, const wire::Transport& headers, TimeNs now) {
  selective_.heard(headers.sr_capable());
  choose_recovery();
  bool selective_nak = (headers.reserved7() & kSelectiveNak) &&
                       headers.operation() == wire::Opcode::kRcAck &&
                       headers.aeth().syndrome == aeth::kNakSequence;
  if (selective_nak) {
    return handle_selective_nak(unwrap_psn(headers.aeth().msn, window_.unacked()));
  }
  uint64_t psn = unwrap_psn(headers.psn(), window_.unacked());
  // A stale or ghost response, outside [unacked, max_sent), is ignored (IBTA 9.7.5.1).
  bool awaited = active() && window_.awaits(psn);
  if (awaited && headers.operation() != wire::Opcode::kRcAck) {
    return handle_response(std::move(packet), headers, psn, now);
  }
  if (awaited) handle_ack(headers.aeth().syndrome, psn, now);
}

// Tells the owner of the windows of an acknowledgement, after it has taken effect. An RNR NAK
// acknowledges, and says nothing of the network.
void Completer::receive_told(PacketPtr&& packet, const wire::Transport& headers, TimeNs now) {
  uint8_t syndrome = headers.aeth().syndrome;
  aeth::Kind kind = aeth::kind_of(syndrome);
  bool acknowledges = kind == aeth::Kind::kAck || kind == aeth::Kind::kRnr;
  take_response(std::move(packet), headers, now);
  if (!active() || (!acknowledges && syndrome != aeth::kNakSequence)) return;
  congestion_.events().note_response(acknowledges ? ROCEFS_QP_ACK : ROCEFS_QP_NACK, *packet,
                                     progress(), now);
}

// Chooses between go-back-N and selective retransmission.
void Completer::choose_recovery() {
  bool recovering = selective_.choose();
  bool sending =
      window_.state == RequesterState::kSending || window_.state == RequesterState::kBlocked;
  if (recovering && qp_.sends() && sending) go_back();
}

// Makes the oldest unanswered packet the next to be sent. Nothing is in flight then: the deadline
// is set when it leaves.
void Completer::go_back() {
  go_back_n_.rewind(window_.unacked());
  deadline_ = kNever;
}

void Completer::handle_ack(uint8_t syndrome, uint64_t psn, TimeNs now) {
  switch (aeth::kind_of(syndrome)) {
    case aeth::Kind::kAck: {
      bool progress = acknowledge_before(psn + 1, now);
      if (selective_.active()) {
        if (active()) selective_.note_beyond(psn + 1, now);
      } else if (qp_.sends() && window_.unacked() <= psn) {
        return handle_implied_nak(progress);
      }
      if (progress) go_on(qp_);
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

// A sequence NAK acknowledges all before its PSN and counts as a retry.
void Completer::handle_sequence_nak(uint64_t psn, TimeNs now) {
  qp_.port().counters().packet_seq_err.add();
  bool progress = acknowledge_before(psn, now);
  if (!active()) return;
  // Linux rxe sends one for each packet behind that of an RNR NAK. They are sent again anyway.
  if (window_.state == RequesterState::kRnrWait) return;
  if (!progress && !use_retry()) return;
  go_back();
}

// A selective NAK names one missing packet and acknowledges none. It neither uses a retry nor sets
// the deadline: repairs that bring no progress end in time-outs.
void Completer::handle_selective_nak(uint64_t psn) {
  if (!active()) return;
  qp_.port().counters().packet_seq_err.add();
  // The packet has come since, or is to be sent anyway.
  if (psn < window_.unacked() || psn >= window_.next()) return;
  const SendWqe& wqe = window_.at(window_.position_of(psn));
  if (wqe.awaits_response() && psn != wqe.first_psn) return;  // one packet asks for all
  selective_.schedule(psn, wqe.awaits_response() ? wqe.end_psn() : psn + 1);
}

// An implied NAK: an answer to a later request shows that the response to a READ or atomic was lost
// (IBTA 9.7.5.2.9). One such answer counts: those that follow it were under way already, as are
// those that follow a time-out.
void Completer::handle_implied_nak(bool progress) {
  if (progress) asked_again_ = false;
  if (window_.state == RequesterState::kFailed || asked_again_ || window_.none_in_flight()) return;
  qp_.port().counters().implied_nak_seq_err.add();
  if (!progress && !use_retry()) return;
  asked_again_ = true;
  go_back();
}

void Completer::handle_rnr_nak(uint64_t psn, uint8_t timer, TimeNs now) {
  qp_.port().counters().rnr_nak_retry_err.add();
  acknowledge_before(psn, now);
  if (!active()) return;
  if (window_.none_in_flight()) return;  // a duplicate: the request has not been sent again since
  if (rnr_retries_left_ == 0) {
    qp_.port().counters().req_rnr_retries_exceeded.add();
    return fail_at(window_.position_of(window_.unacked()), WcStatus::kRnrRetryExceeded);
  }
  if (qp_.attributes().rnr_retry != kInfiniteRetry) --rnr_retries_left_;
  retries_left_ = qp_.attributes().retry_count;  // the path and the far end are alive
  go_back();
  window_.state = RequesterState::kRnrWait;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().at(rnr_timer_, now + rnr_timer_ns(timer));
}

void Completer::handle_fatal_nak(uint64_t psn, uint8_t syndrome, TimeNs now) {
  bool progress = acknowledge_before(psn, now);
  if (!active()) return;
  bool answers_oldest = window_.position_of(window_.unacked()) == window_.position_of(psn);
  if (!answers_oldest) return handle_implied_nak(progress);
  PortCounters& counters = qp_.port().counters();
  WcStatus status = WcStatus::kRemoteOperationError;
  if (syndrome == aeth::kNakInvalidRequest) {
    counters.req_remote_invalid_request.add();
    status = WcStatus::kRemoteInvalidRequest;
  } else if (syndrome == aeth::kNakRemoteAccess) {
    counters.req_remote_access_errors.add();
    status = WcStatus::kRemoteAccessError;
  }
  fail_at(window_.position_of(psn), status);
}

bool Completer::acknowledge_before(uint64_t psn, TimeNs now) {
  if (selective_.active()) {
    selective_.acknowledge(psn);
    return advance(now);
  }
  psn = window_.answerable_before(psn);
  if (psn <= window_.unacked()) return false;
  window_.acknowledge(psn);
  note_progress(now);
  return true;
}

// Selective: moves the window to the first unanswered PSN. Returns whether that was progress.
bool Completer::advance(TimeNs now) {
  uint64_t psn = selective_.take_answered();
  if (psn <= window_.unacked()) return false;
  window_.acknowledge(psn);
  note_progress(now);
  selective_.note_progress();
  return true;
}

void Completer::note_progress(TimeNs now) {
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
  timed_out_ = false;
  window_.grow();
  asked_again_ = false;
  congestion_.acknowledged(window_.unacked(), now);
  // After going back, more can be acknowledged than was sent again.
  if (window_.next() < window_.unacked()) go_back();
  complete_finished();
  if (!active()) return;
  if (window_.none_in_flight()) {
    deadline_ = kNever;  // the event finds no deadline and ends
  } else {
    arm_timer(now);
  }
}

// Handles a response to a READ or atomic, which acknowledges all PSNs before it.
void Completer::handle_response(PacketPtr&& packet, const wire::Transport& headers, uint64_t psn,
                                TimeNs now) {
  if (selective_.active())
    return handle_out_of_order_response(std::move(packet), headers, psn, now);
  bool progress = acknowledge_before(psn, now);
  if (!active()) return;
  if (window_.unacked() < psn) {
    qp_.note_gap(psn - window_.unacked());
    return handle_implied_nak(progress);
  }
  if (placing() == kMaxPlacements) return;
  uint64_t position = window_.position_of(psn);
  if (!fits(window_.at(position), headers, psn)) {
    return fail_at(position, WcStatus::kBadResponse);
  }
  place(std::move(packet), headers, position, psn);
  window_.acknowledge(psn + 1);
  note_progress(now);
  if (qp_.sends()) go_on(qp_);
}

// Handles a response to a READ or atomic in any order.
void Completer::handle_out_of_order_response(PacketPtr&& packet, const wire::Transport& headers,
                                             uint64_t psn, TimeNs now) {
  acknowledge_before(psn, now);
  bool awaited = active() && psn >= window_.unacked() && !selective_.has_arrived(psn) &&
                 placing() < kMaxPlacements;
  if (!awaited) return;
  uint64_t position = window_.position_of(psn);
  if (!window_.at(position).awaits_response() || !fits(window_.at(position), headers, psn)) {
    note_failure(window_.at(position), WcStatus::kBadResponse);
    if (window_.state == RequesterState::kFailed) fail_at(position, WcStatus::kBadResponse);
    return;
  }
  if (psn > window_.unacked()) {
    qp_.port().counters().sr_ooo_placed.add();
    qp_.note_gap(psn - window_.unacked());
  }
  place(std::move(packet), headers, position, psn);
  selective_.mark_arrived(psn, now);
  advance(now);
  if (!qp_.sends()) return;
  selective_.note_beyond(psn + 1, now);
  go_on(qp_);
}

// Whether the response is the one that the request awaits at this PSN.
bool Completer::fits(const SendWqe& wqe, const wire::Transport& headers, uint64_t psn) {
  const wire::OpcodeInfo& info = headers.info();
  if (info.has_aeth && aeth::kind_of(headers.aeth().syndrome) != aeth::Kind::kAck) {
    return false;
  }
  if (info.has_atomic_ack_eth) {
    return wqe.has(ROCEFS_ATOMIC_RESPONSE);
  }
  uint64_t mtu = qp_.attributes().path_mtu;
  uint64_t offset = (psn - wqe.first_psn) * mtu;
  bool last = psn + 1 == wqe.end_psn();
  // The response to a partial READ request ends before the whole READ does.
  bool ends = info.last || info.only;
  uint64_t length = wqe.sends_payload() ? 0 : std::min(mtu, wqe.length - offset);
  return wqe.has(ROCEFS_READ_RESPONSE) && (ends == last || (ends && selective_.used())) &&
         headers.payload_len() == length;
}

// Asks memory to take the data.
void Completer::place(PacketPtr&& packet, const wire::Transport& headers, uint64_t position,
                      uint64_t psn) {
  SendWqe& wqe = window_.at(position);
  uint64_t offset = (psn - wqe.first_psn) * qp_.attributes().path_mtu;
  if (free_placements_.empty()) {
    free_placements_.push_back(placements_.size());
    placements_.emplace_back();
  }
  uint64_t slot = free_placements_.back();
  Moved moved;
  std::span<const Sge> entries = wqe.request.sges.entries();
  if (headers.operation() == wire::Opcode::kRcAtomicAck) {
    uint64_t original = headers.atomic_ack().original;
    uint8_t* bytes = packet->pool->attach_frame(*packet)->bytes.data();
    std::memcpy(bytes, &original, sizeof original);
    moved = scatter(qp_.mover(*this, kLocalWrite), entries, 0, {bytes, sizeof original}, slot);
  } else {
    moved = scatter_payload(qp_.mover(*this, kLocalWrite), entries, offset, *packet, slot);
  }
  if (moved.failed) note_failure(wqe, WcStatus::kLocalProtectionError);
  if (moved.pending == 0) return;
  free_placements_.pop_back();
  placements_[slot] = {std::move(packet), position, moved.pending, moved.failed};
  ++wqe.placing;
}

void Completer::memory_done(uint64_t ticket, bool ok) {
  placed(ticket, ok);
  qp_.memory_settled();
}

void Completer::placed(uint64_t ticket, bool ok) {
  Placement& placement = placements_[ticket];
  placement.failed |= !ok;
  if (--placement.pending > 0) return;
  placement.packet.reset();
  free_placements_.push_back(ticket);
  if (!window_.holds(placement.position)) return;  // the QP has been reset
  SendWqe& wqe = window_.at(placement.position);
  --wqe.placing;
  if (placement.failed) note_failure(wqe, WcStatus::kLocalProtectionError);
  if (qp_.sends()) {
    complete_finished();
  } else {
    flush();
  }
}

// Uses up a retry. False when none is left: the oldest request fails.
bool Completer::use_retry() {
  if (retries_left_ > 0) {
    --retries_left_;
    return true;
  }
  qp_.port().counters().req_transport_retries_exceeded.add();
  fail_at(window_.position_of(window_.unacked()), WcStatus::kRetryExceeded);
  return false;
}

// Sets a new deadline at each sign of progress. A later deadline does not move the event, which
// re-arms itself when it fires: acknowledgements are frequent, time-outs rare.
void Completer::arm_timer(TimeNs now) {
  // No answer is late during the RNR wait: the first packet after it arms the timer.
  if (window_.state == RequesterState::kRnrWait) return;
  uint8_t timeout = qp_.attributes().timeout & 31;
  if (timeout == 0) {
    deadline_ = kNever;
    return;
  }
  deadline_ = now + (TimeNs{4096} << timeout);
  if (timer_.due() > deadline_) qp_.scheduler().at(timer_, deadline_);
}

// Retransmits unanswered packets until the retries are used up. A retry is a packet sent again: one
// that still waits for its turn, because of PAUSE or a low rate, is not late, and the deadline is
// set when it leaves.
void Completer::on_timeout(TimeNs now) {
  if (deadline_ == kNever) return;
  if (now < deadline_) return qp_.scheduler().at(timer_, deadline_);
  deadline_ = kNever;
  if (window_.state == RequesterState::kFailed || selective_.repeats_oldest()) return;
  ++timeouts_;
  qp_.port().counters().local_ack_timeout_err.add();
  if (congestion_.events().wanted()) congestion_.events().note_timeout(progress(), now);
  if (!use_retry()) return;
  // A far end that is slow is not helped by all packets again, each answered by a duplicate ACK.
  if (timed_out_) window_.shrink();
  timed_out_ = asked_again_ = true;
  choose_recovery();
  if (!selective_.active() || !selective_.probe()) go_back();
}

void Completer::on_rnr_wait_over(TimeNs) {
  if (window_.state == RequesterState::kRnrWait) window_.state = RequesterState::kSending;
  qp_.make_data_ready();
}

void Completer::fail_current(WcStatus status) {
  window_.state = RequesterState::kBlocked;
  window_.current().failure = status;
  complete_finished();
}

// Fails the request at `position`, which ends when all before it have. No further packet is sent.
void Completer::fail_at(uint64_t position, WcStatus status) {
  window_.state = RequesterState::kFailed;
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  window_.at(position).failure = status;
  complete_finished();
}

// Notes that the request's response is unusable. Sending stops unless PSNs before the request are
// unanswered: then the request ends when their answers have come.
void Completer::note_failure(SendWqe& wqe, WcStatus status) {
  wqe.failure = status;
  if (wqe.first_psn <= window_.unacked()) window_.state = RequesterState::kFailed;
}

void Completer::complete_finished() {
  complete_all_finished();
  if (qp_.state() == QpState::kSqd && window_.drained()) qp_.raise(QpEvent::kDrained);
}

void Completer::complete_all_finished() {
  while (!window_.empty() && window_.front().placing == 0) {
    WcStatus failure = window_.front().failure;
    if (failure != WcStatus::kSuccess) return fail_front(failure);
    if (!window_.front_done()) return;
    complete_front(WcStatus::kSuccess);
    if (!qp_.sends()) return;
  }
}

// Ends the oldest request in failure, and with it the connection (RC, XRC) or the sending half (UC,
// UD).
void Completer::fail_front(WcStatus status) {
  complete_front(status);
  if (qp_.reliable()) {
    qp_.enter_error();
  } else {
    qp_.enter_send_error();
  }
}

void Completer::complete_front(WcStatus status) {
  const SendWqe& wqe = window_.front();
  uint64_t wr_id = wqe.request.wr_id;
  WcOpcode opcode = send_op_info(wqe.request.op).completion;
  uint32_t byte_len = wqe.takes_data() ? static_cast<uint32_t>(wqe.length) : 0;
  bool report = wqe.request.signaled || status != WcStatus::kSuccess;
  bool frees_rd_atomic = wqe.awaits_response() && wqe.begun;
  window_.pop();
  if (frees_rd_atomic) qp_.make_data_ready();  // a request that waits for the slot may go
  if (status == WcStatus::kFlushed) {
    qp_.port().counters().req_cqe_flush_error.add();
  } else if (status != WcStatus::kSuccess) {
    qp_.port().counters().req_cqe_error.add();
  }
  if (!report) return;
  Completion* completion = qp_.send_cq().claim();
  if (!completion) {
    qp_.raise(QpEvent::kFatal);
    return qp_.enter_error();
  }
  completion->wr_id = wr_id;
  completion->status = status;
  completion->opcode = opcode;
  completion->byte_len = byte_len;
  completion->qpn = qp_.number();
  qp_.send_cq().publish(false);
}

void Completer::flush() {
  stop();
  if (window_.state == RequesterState::kRnrWait) window_.state = RequesterState::kSending;
  while (!window_.empty() && window_.front().placing == 0) complete_front(WcStatus::kFlushed);
  if (window_.empty()) window_.state = RequesterState::kSending;
}

void Completer::stop() {
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().cancel(rnr_timer_);
}

void Completer::reset() {
  stop();
  asked_again_ = false;
  timed_out_ = false;
}

}  // namespace rocefs
