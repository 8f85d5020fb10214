// What the requester does when selective retransmission is agreed: it sends again what NAKs name,
// takes responses in any order, and asks again for those that are missing.
#include <algorithm>

#include "rdma/transport/qp.h"
#include "rdma/transport/requester.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Requester::SelectiveRepeat::SelectiveRepeat(Requester& requester)
    : retransmissions(kMaxRetransmissions),
      fetch(requester.qp_.host().pool()),
      timer(event_of<&Requester::on_missing_timer>(&requester)) {}

// Until the far end has said anything, it may agree: what it says then shows whether it does.
bool Requester::may_use_selective() const {
  return qp_.host().selective().enabled() && agreement_.may_agree();
}

Requester::SelectiveRepeat& Requester::selective() {
  if (!selective_) selective_ = std::make_unique<SelectiveRepeat>(*this);
  return *selective_;
}

// Which way a loss is mended from now on. Whoever goes back n knows nothing of what has come out of
// order: it is sent again.
void Requester::choose_recovery() {
  if (may_use_selective() == selective_mode_) return;
  selective_mode_ = !selective_mode_;
  if (selective_mode_) {
    SelectiveRepeat& now = selective();
    now.acknowledged = now.top = unacked_psn_;
    now.recovery = 0;
    return;
  }
  SelectiveRepeat& before = *selective_;
  bool recovering = !before.retransmissions.empty() || !before.missing.empty() ||
                    before.recovery > unacked_psn_ || before.acknowledged > unacked_psn_;
  reset_selective();
  if (recovering && qp_.sends() && !rnr_waiting_ && !doomed_) rewind(unacked_psn_);
}

// Everything is sent again that is not acknowledged: nothing else need be.
void Requester::drop_retransmissions() {
  if (!selective_) return;
  while (!selective_->retransmissions.empty()) selective_->retransmissions.pop();
  selective_->fetch.drop();
  selective_->missing.clear();
  selective_->top = unacked_psn_;
  selective_->recovery = 0;
  qp_.scheduler().cancel(selective_->timer);
}

void Requester::reset_selective() {
  if (!selective_) return;
  drop_retransmissions();
  selective_->arrived.fill(0);
  selective_->acknowledged = unacked_psn_;
  selective_->asked_for = 0;
}

// A retry is used when the oldest packet is asked for again that was sent again for the asking; one
// for as long as the ACK timeout, since the far end asks by its own, shorter reorder_limits.
bool Requester::use_retry_for(uint64_t psn, TimeNs now) {
  if (psn != unacked_psn_) return true;
  SelectiveRepeat& own = selective();
  if (std::exchange(own.asked_for, psn) != psn) {
    own.retry_due = now;
    return true;
  }
  if (now < own.retry_due) return true;
  own.retry_due = now + (TimeNs{4096} << (qp_.attributes().timeout & 31));
  return use_retry();
}

// It says that one packet is missing, and nothing of others.
void Requester::handle_selective_nak(uint64_t psn, TimeNs now) {
  if (!qp_.sends() || doomed_) return;
  qp_.port().counters().packet_seq_err.add();
  if (psn < unacked_psn_ || psn >= next_psn_) return;  // it has come since, or is to be sent anyway
  const Wqe& wqe = queue_.at(position_of(psn));
  if (wqe.awaits_response() && psn != wqe.first_psn) return;  // its request is one packet
  uint64_t end = wqe.awaits_response() ? wqe.end_psn() : psn + 1;
  if (is_scheduled(psn, end) || !use_retry_for(psn, now)) return;
  schedule_retransmission(psn, end);
  arm_timer(now);
}

// A READ response or an atomic's, in any order. Takes the packet.
void Requester::handle_out_of_order_response(Packet* packet, const wire::Transport& headers,
                                             uint64_t psn, TimeNs now) {
  PacketPool& pool = qp_.host().pool();
  SelectiveRepeat& own = *selective_;
  acknowledge_before(psn, now);
  bool awaited = qp_.sends() && !doomed_ && psn - unacked_psn_ < kMaxOutOfOrder && !own.has(psn) &&
                 placing() < kMaxPlacements;
  if (!awaited) return pool.release(packet);
  uint64_t position = position_of(psn);
  if (!queue_.at(position).awaits_response() || !fits(queue_.at(position), headers, psn)) {
    note_failure(queue_.at(position), WcStatus::kBadResponse);
    if (doomed_) fail_at(position, WcStatus::kBadResponse);
    return pool.release(packet);
  }
  if (psn > unacked_psn_) {
    qp_.port().counters().sr_ooo_placed.add();
    qp_.note_gap(psn - unacked_psn_);
  }
  place(packet, headers, position, psn);
  own.flip(psn);
  own.missing.mark_received(psn, psn + 1, now);
  advance(now);
  if (!qp_.sends()) return;
  note_beyond(psn + 1, now);
  qp_.make_data_ready();
}

// Whether the response at this PSN has come, ahead of its turn.
bool Requester::has_arrived(uint64_t psn) const {
  return psn - unacked_psn_ < kMaxOutOfOrder && selective_->has(psn);
}

// One past the PSNs that are answered without a gap. What has come of responses on the way is
// forgotten.
uint64_t Requester::first_unanswered() {
  uint64_t psn = unacked_psn_;
  if (rd_atomics_begun_ == 0) return std::max(psn, selective_->acknowledged);
  for (uint64_t at = queue_.head(); at != queue_.tail(); ++at) {
    const Wqe& wqe = queue_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= psn) continue;
    if (wqe.awaits_response()) {
      for (; psn < wqe.end_psn() && selective_->has(psn); ++psn) selective_->flip(psn);
    } else {
      psn = std::min(wqe.end_psn(), std::max(psn, selective_->acknowledged));
    }
    if (psn < wqe.end_psn()) break;
  }
  return psn;
}

// Whether that was progress.
bool Requester::advance(TimeNs now) {
  uint64_t psn = first_unanswered();
  if (psn <= unacked_psn_) return false;
  unacked_psn_ = psn;
  note_progress(now);
  selective_->probes = 0;
  return true;
}

// Something has come that was answered after all before `psn`: what is missing there of responses
// was lost or overtaken.
void Requester::note_beyond(uint64_t psn, TimeNs now) {
  SelectiveRepeat& own = *selective_;
  own.missing.count_arrival();
  uint64_t from = std::max(own.top, unacked_psn_);
  own.top = std::max(own.top, psn);
  for (uint64_t at = queue_.head(); from < psn && at != queue_.tail(); ++at) {
    const Wqe& wqe = queue_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= from || !wqe.awaits_response()) continue;
    uint64_t begin = std::max(from, wqe.first_psn), end = std::min(psn, wqe.end_psn());
    while (begin < end) {
      if (has_arrived(begin)) {
        ++begin;
        continue;
      }
      uint64_t stop = begin + 1;
      while (stop < end && !has_arrived(stop)) ++stop;
      own.missing.add(begin, stop, now, qp_.reorder_limits());
      begin = stop;
    }
  }
  if (!own.missing.empty()) request_missing(now);
}

void Requester::request_missing(TimeNs now) {
  SelectiveRepeat& own = *selective_;
  // What was given up is left to the time-out.
  auto ask = [&](uint64_t begin, uint64_t end, uint8_t tries) {
    if (tries <= MissingPsns::kMaxTries) request_responses(begin, end);
  };
  own.missing.drop_before(unacked_psn_);
  own.missing.nak_due(now, qp_.reorder_limits(), ask);
  if (own.missing.due() == kNever) {
    qp_.scheduler().cancel(own.timer);
  } else if (own.timer.due() != own.missing.due()) {
    qp_.scheduler().at(own.timer, own.missing.due());
  }
}

void Requester::request_responses(uint64_t begin, uint64_t end) {
  begin = std::max(begin, unacked_psn_);
  if (begin < end) schedule_retransmission(begin, end);
}

void Requester::on_missing_timer(TimeNs now) {
  if (!qp_.sends() || doomed_ || !selective_mode_) return;
  request_missing(now);
}

// Whether it is about to be.
bool Requester::is_scheduled(uint64_t psn, uint64_t end) {
  WorkQueue<Retransmission>& retransmissions = selective().retransmissions;
  for (uint64_t at = retransmissions.head(); at != retransmissions.tail(); ++at) {
    if (retransmissions.at(at).psn <= psn && end <= retransmissions.at(at).end) return true;
  }
  return false;
}

void Requester::schedule_retransmission(uint64_t psn, uint64_t end) {
  WorkQueue<Retransmission>& retransmissions = selective().retransmissions;
  if (is_scheduled(psn, end) || retransmissions.full()) return;  // or it will be asked for again
  retransmissions.push({psn, end});
  qp_.make_data_ready();
}

// After a time-out. The newest packet goes again: if the end of what was sent is lost, that is it;
// else it makes the far end say what is missing. If that has not helped twice, everything goes: the
// far end may go back n, and packets may be lost as fast as they are sent.
void Requester::send_probe() {
  constexpr uint32_t kMaxProbes = 2;
  if (unacked_psn_ >= next_psn_) return qp_.make_data_ready();
  if (++selective_->probes > kMaxProbes) return rewind(unacked_psn_);
  selective_->recovery = next_psn_;
  uint64_t newest = next_psn_ - 1;
  const Wqe& wqe = queue_.at(position_of(newest));
  if (wqe.awaits_response()) newest = wqe.first_psn;
  if (newest <= unacked_psn_) return retransmit_oldest();
  schedule_retransmission(newest, wqe.awaits_response() ? wqe.end_psn() : newest + 1);
}

// The oldest packet without an answer, or what is missing of the oldest response.
void Requester::retransmit_oldest() {
  uint64_t psn = unacked_psn_, end = psn + 1;
  const Wqe& wqe = queue_.at(position_of(psn));
  if (!wqe.awaits_response()) return schedule_retransmission(psn, end);
  uint64_t seen = std::min(wqe.end_psn(), psn + kMaxOutOfOrder);
  while (end < seen && !has_arrived(end)) ++end;
  schedule_retransmission(psn, end == seen ? wqe.end_psn() : end);
}

// Takes off what has come meanwhile. False when nothing is left.
bool Requester::trim(Retransmission& next, uint64_t& position) {
  next.psn = std::max(next.psn, unacked_psn_);
  while (next.psn < next.end && has_arrived(next.psn)) ++next.psn;
  if (next.psn >= next.end || next.psn >= next_psn_) return false;
  position = position_of(next.psn);
  next.end = std::min(next.end, queue_.at(position).end_psn());
  return true;
}

// The next packet that is to be sent again; null when there is none now.
Packet* Requester::emit_retransmission(TimeNs now) {
  SelectiveRepeat& own = *selective_;
  if (!qp_.sends() || rnr_waiting_ || doomed_) return nullptr;
  while (!own.retransmissions.empty()) {
    Retransmission& next = own.retransmissions.front();
    uint64_t position = 0;
    if (!trim(next, position)) {
      own.retransmissions.pop();
      own.fetch.drop();
      continue;
    }
    const Wqe& wqe = queue_.at(position);
    Packet* packet = wqe.awaits_response() ? qp_.host().pool().acquire()
                                           : fetch_retransmission(wqe, position, next.psn);
    if (!packet) return nullptr;
    qp_.congestion().note_retransmission();
    write_headers(wqe, {next.psn, next.end, true}, packet, now);
    own.retransmissions.pop();
    ++packets_sent_;
    ++packets_resent_;
    qp_.port().counters().sr_retrans.add();
    if (deadline_ == kNever) arm_timer(now);
    return packet;
  }
  return nullptr;
}

// Null when its bytes are on their way, or cannot be had: then everything is sent again, and that
// is met in its turn.
Packet* Requester::fetch_retransmission(const Wqe& wqe, uint64_t position, uint64_t psn) {
  PacketPool& pool = qp_.host().pool();
  Prefetch& fetch = selective_->fetch;
  Prefetch::Key key{position, (psn - wqe.first_psn) * qp_.attributes().path_mtu};
  Prefetch::State state = fetch.state(key);
  if (state == Prefetch::State::kReady) return fetch.take();
  if (state == Prefetch::State::kPending) return nullptr;
  if (state == Prefetch::State::kAbsent) {
    fetch.drop();
    if (fetch.full()) return nullptr;
    Packet* packet = pool.acquire();
    Moved moved = gather(qp_.mover(*this, 0), wqe.request.sges.entries(), key.offset,
                         payload_length(wqe, key.offset), packet,
                         kPrefetchTicket | kRetransmissionTicket | fetch.ticket());
    if (moved.pending > 0) {
      fetch.add(packet, key, moved);
      return nullptr;
    }
    if (!moved.failed) return packet;
    pool.release(packet);
  }
  rewind(unacked_psn_);
  return nullptr;
}

}  // namespace rocefs
