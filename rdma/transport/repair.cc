// What the requester does when selective retransmission is agreed: it sends again what NAKs name,
// takes responses in any order, and asks again for those that are missing.
#include <algorithm>

#include "rdma/transport/qp.h"
#include "rdma/transport/requester.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Requester::Repair::Repair(Requester& requester)
    : again(kMostAgain),
      fetch(requester.qp_.host().pool()),
      timer(event_of<&Requester::on_hole_timer>(&requester)) {}

// Until the far end has said anything, it may agree: what it says then shows whether it does.
bool Requester::may_repair() const {
  return qp_.host().selective().enabled() && agreement_.may_agree();
}

Requester::Repair& Requester::repair() {
  if (!repair_) repair_ = std::make_unique<Repair>(*this);
  return *repair_;
}

// Which way a loss is mended from now on. Whoever goes back n knows nothing of what has come out of
// order: it is sent again.
void Requester::choose_mode() {
  if (may_repair() == repairs_) return;
  repairs_ = !repairs_;
  if (repairs_) {
    Repair& now = repair();
    now.acknowledged = now.top = unacknowledged_;
    now.recovery = 0;
    return;
  }
  Repair& before = *repair_;
  bool repairing = !before.again.empty() || !before.holes.empty() ||
                   before.recovery > unacknowledged_ || before.acknowledged > unacknowledged_;
  clear_repair();
  if (repairing && qp_.sends() && !rnr_waiting_ && !doomed_) rewind(unacknowledged_);
}

// Everything is sent again that is not acknowledged: nothing else need be.
void Requester::forget_repairs() {
  if (!repair_) return;
  while (!repair_->again.empty()) repair_->again.pop();
  repair_->fetch.drop();
  repair_->holes.clear();
  repair_->top = unacknowledged_;
  repair_->recovery = 0;
  qp_.scheduler().cancel(repair_->timer);
}

void Requester::clear_repair() {
  if (!repair_) return;
  forget_repairs();
  repair_->arrived.fill(0);
  repair_->acknowledged = unacknowledged_;
  repair_->asked_for = 0;
}

// A retry is used when the oldest packet is asked for again that was sent again for the asking; one
// for as long as the ACK timeout, since the far end asks by its own, shorter patience.
bool Requester::use_retry_for(uint64_t psn, TimeNs now) {
  if (psn != unacknowledged_) return true;
  Repair& own = repair();
  if (std::exchange(own.asked_for, psn) != psn) {
    own.retry_due = now;
    return true;
  }
  if (now < own.retry_due) return true;
  own.retry_due = now + (TimeNs{4096} << (qp_.attributes().timeout & 31));
  return use_retry();
}

// It says that one packet is missing, and nothing of others.
void Requester::take_selective_nak(uint64_t psn, TimeNs now) {
  if (!qp_.sends() || doomed_) return;
  qp_.port().counters().packet_seq_err.add();
  if (psn < unacknowledged_ || psn >= next_) return;  // it has come since, or is to be sent anyway
  const Wqe& wqe = queue_.at(position_of(psn));
  if (wqe.awaits_data() && psn != wqe.first_psn) return;  // its request is one packet
  uint64_t end = wqe.awaits_data() ? wqe.end_psn() : psn + 1;
  if (is_sent_again(psn, end) || !use_retry_for(psn, now)) return;
  send_again(psn, end);
  arm_timer(now);
}

// A READ response or an atomic's, in any order. Takes the packet.
void Requester::take_data_ahead(Packet* packet, const wire::Transport& headers, uint64_t psn,
                                TimeNs now) {
  PacketPool& pool = qp_.host().pool();
  Repair& repair = *repair_;
  acknowledge_before(psn, now);
  bool awaited = qp_.sends() && !doomed_ && psn - unacknowledged_ < kMostAhead &&
                 !repair.has(psn) && placing() < kMaxPlacements;
  if (!awaited) return pool.release(packet);
  uint64_t position = position_of(psn);
  if (!queue_.at(position).awaits_data() || !fits(queue_.at(position), headers, psn)) {
    note_failure(queue_.at(position), WcStatus::kBadResponse);
    if (doomed_) fail_at(position, WcStatus::kBadResponse);
    return pool.release(packet);
  }
  if (psn > unacknowledged_) {
    qp_.port().counters().sr_ooo_placed.add();
    qp_.note_gap(psn - unacknowledged_);
  }
  place(packet, headers, position, psn);
  repair.flip(psn);
  repair.holes.fill(psn, psn + 1, now);
  advance(now);
  if (!qp_.sends()) return;
  note_beyond(psn + 1, now);
  qp_.make_data_ready();
}

// Whether the response at this PSN has come, ahead of its turn.
bool Requester::has_arrived(uint64_t psn) const {
  return psn - unacknowledged_ < kMostAhead && repair_->has(psn);
}

// One past the PSNs that are answered without a gap. What has come of responses on the way is
// forgotten.
uint64_t Requester::first_unanswered() {
  uint64_t psn = unacknowledged_;
  if (data_begun_ == 0) return std::max(psn, repair_->acknowledged);
  for (uint64_t at = queue_.head(); at != queue_.tail(); ++at) {
    const Wqe& wqe = queue_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= psn) continue;
    if (wqe.awaits_data()) {
      for (; psn < wqe.end_psn() && repair_->has(psn); ++psn) repair_->flip(psn);
    } else {
      psn = std::min(wqe.end_psn(), std::max(psn, repair_->acknowledged));
    }
    if (psn < wqe.end_psn()) break;
  }
  return psn;
}

// Whether that was progress.
bool Requester::advance(TimeNs now) {
  uint64_t psn = first_unanswered();
  if (psn <= unacknowledged_) return false;
  unacknowledged_ = psn;
  note_progress(now);
  repair_->probes = 0;
  return true;
}

// Something has come that was answered after all before `psn`: what is missing there of responses
// was lost or overtaken.
void Requester::note_beyond(uint64_t psn, TimeNs now) {
  Repair& repair = *repair_;
  repair.holes.count_arrival();
  uint64_t from = std::max(repair.top, unacknowledged_);
  repair.top = std::max(repair.top, psn);
  for (uint64_t at = queue_.head(); from < psn && at != queue_.tail(); ++at) {
    const Wqe& wqe = queue_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= from || !wqe.awaits_data()) continue;
    uint64_t begin = std::max(from, wqe.first_psn), end = std::min(psn, wqe.end_psn());
    while (begin < end) {
      if (has_arrived(begin)) {
        ++begin;
        continue;
      }
      uint64_t stop = begin + 1;
      while (stop < end && !has_arrived(stop)) ++stop;
      repair.holes.note(begin, stop, now, qp_.patience());
      begin = stop;
    }
  }
  if (!repair.holes.empty()) ask_for_missing(now);
}

void Requester::ask_for_missing(TimeNs now) {
  Repair& repair = *repair_;
  // What was given up is left to the time-out.
  auto ask = [&](uint64_t begin, uint64_t end, uint8_t tries) {
    if (tries <= Holes::kMostTries) ask_for_responses(begin, end);
  };
  repair.holes.forget_before(unacknowledged_);
  repair.holes.ask_for_lost(now, qp_.patience(), ask);
  if (repair.holes.due() == kNever) {
    qp_.scheduler().cancel(repair.timer);
  } else if (repair.timer.due() != repair.holes.due()) {
    qp_.scheduler().at(repair.timer, repair.holes.due());
  }
}

void Requester::ask_for_responses(uint64_t begin, uint64_t end) {
  begin = std::max(begin, unacknowledged_);
  if (begin < end) send_again(begin, end);
}

void Requester::on_hole_timer(TimeNs now) {
  if (!qp_.sends() || doomed_ || !repairs_) return;
  ask_for_missing(now);
}

// Whether it is about to be.
bool Requester::is_sent_again(uint64_t psn, uint64_t end) {
  WorkQueue<Again>& again = repair().again;
  for (uint64_t at = again.head(); at != again.tail(); ++at) {
    if (again.at(at).psn <= psn && end <= again.at(at).end) return true;
  }
  return false;
}

void Requester::send_again(uint64_t psn, uint64_t end) {
  WorkQueue<Again>& again = repair().again;
  if (is_sent_again(psn, end) || again.full()) return;  // or it will be asked for again
  again.push({psn, end});
  qp_.make_data_ready();
}

// After a time-out. The newest packet goes again: if the end of what was sent is lost, that is it;
// else it makes the far end say what is missing. If that has not helped twice, everything goes: the
// far end may go back n, and packets may be lost as fast as they are sent.
void Requester::send_probe() {
  constexpr uint32_t kMostProbes = 2;
  if (unacknowledged_ >= next_) return qp_.make_data_ready();
  if (++repair_->probes > kMostProbes) return rewind(unacknowledged_);
  repair_->recovery = next_;
  uint64_t newest = next_ - 1;
  const Wqe& wqe = queue_.at(position_of(newest));
  if (wqe.awaits_data()) newest = wqe.first_psn;
  if (newest <= unacknowledged_) return send_oldest_again();
  send_again(newest, wqe.awaits_data() ? wqe.end_psn() : newest + 1);
}

// The oldest packet without an answer, or what is missing of the oldest response.
void Requester::send_oldest_again() {
  uint64_t psn = unacknowledged_, end = psn + 1;
  const Wqe& wqe = queue_.at(position_of(psn));
  if (!wqe.awaits_data()) return send_again(psn, end);
  uint64_t seen = std::min(wqe.end_psn(), psn + kMostAhead);
  while (end < seen && !has_arrived(end)) ++end;
  send_again(psn, end == seen ? wqe.end_psn() : end);
}

// Takes off what has come meanwhile. False when nothing is left.
bool Requester::trim(Again& again, uint64_t& position) {
  again.psn = std::max(again.psn, unacknowledged_);
  while (again.psn < again.end && has_arrived(again.psn)) ++again.psn;
  if (again.psn >= again.end || again.psn >= next_) return false;
  position = position_of(again.psn);
  again.end = std::min(again.end, queue_.at(position).end_psn());
  return true;
}

// The next packet that is to be sent again; null when there is none now.
Packet* Requester::emit_again(TimeNs now) {
  Repair& repair = *repair_;
  if (!qp_.sends() || rnr_waiting_ || doomed_) return nullptr;
  while (!repair.again.empty()) {
    Again& again = repair.again.front();
    uint64_t position = 0;
    if (!trim(again, position)) {
      repair.again.pop();
      repair.fetch.drop();
      continue;
    }
    const Wqe& wqe = queue_.at(position);
    Packet* packet =
        wqe.awaits_data() ? qp_.host().pool().acquire() : fetch_again(wqe, position, again.psn);
    if (!packet) return nullptr;
    qp_.congestion().sends_again();
    write_headers(wqe, {again.psn, again.end, true}, packet, now);
    repair.again.pop();
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
Packet* Requester::fetch_again(const Wqe& wqe, uint64_t position, uint64_t psn) {
  PacketPool& pool = qp_.host().pool();
  FetchAhead& fetch = repair_->fetch;
  FetchAhead::Key key{position, (psn - wqe.first_psn) * qp_.attributes().path_mtu};
  FetchAhead::State state = fetch.state(key);
  if (state == FetchAhead::State::kReady) return fetch.take();
  if (state == FetchAhead::State::kPending) return nullptr;
  if (state == FetchAhead::State::kAbsent) {
    fetch.drop();
    if (fetch.full()) return nullptr;
    Packet* packet = pool.acquire();
    Moved moved = gather(qp_.mover(*this, 0), wqe.request.sges.entries(), key.offset,
                         payload_length(wqe, key.offset), packet,
                         kFetchTicket | kAgainTicket | fetch.ticket());
    if (moved.pending > 0) {
      fetch.add(packet, key, moved);
      return nullptr;
    }
    if (!moved.failed) return packet;
    pool.release(packet);
  }
  rewind(unacknowledged_);
  return nullptr;
}

}  // namespace rocefs
