#include "rdma/transport/selective_repeat.h"

#include <algorithm>
#include <utility>

namespace rocefs {

SelectiveRepeat::Own::Own(SelectiveRepeat& repeat)
    : retransmissions(kMaxRetransmissions),
      timer(event_of<&SelectiveRepeat::on_missing_timer>(&repeat)) {}

SelectiveRepeat::Own& SelectiveRepeat::own() {
  if (!own_) own_ = std::make_unique<Own>(*this);
  return *own_;
}

void SelectiveRepeat::start() {
  agreement_.forget();
  active_ = false;
  reset();
}

bool SelectiveRepeat::choose() {
  bool may_use = qp_.host().selective().enabled() && agreement_.may_agree();
  if (may_use == active_) return false;
  active_ = may_use;
  if (active_) {
    own().acknowledged = own().top = window_.unacked();
    own().recovery = 0;
    return false;
  }
  bool recovering = !own_->retransmissions.empty() || !own_->missing.empty() ||
                    own_->recovery > window_.unacked() || own_->acknowledged > window_.unacked();
  reset();
  return recovering;
}

void SelectiveRepeat::drop() {
  if (!own_) return;
  while (!own_->retransmissions.empty()) own_->retransmissions.pop();
  own_->fetch.drop();
  own_->missing.clear();
  own_->top = window_.unacked();
  own_->recovery = 0;
  qp_.scheduler().cancel(own_->timer);
}

void SelectiveRepeat::reset() {
  if (!own_) return;
  drop();
  own_->arrived.fill(0);
  own_->acknowledged = window_.unacked();
  own_->asked_for = 0;
}

void SelectiveRepeat::acknowledge(uint64_t psn) {
  own_->acknowledged = std::max(own_->acknowledged, psn);
}

void SelectiveRepeat::mark_arrived(uint64_t psn, TimeNs now) {
  own_->flip(psn);
  own_->missing.mark_received(psn, psn + 1, now);
}

bool SelectiveRepeat::uses_retry(uint64_t psn, TimeNs now) {
  if (psn != window_.unacked()) return false;
  if (std::exchange(own().asked_for, psn) != psn) {
    own().retry_due = now;
    return false;
  }
  if (now < own().retry_due) return false;
  own().retry_due = now + (TimeNs{4096} << (qp_.attributes().timeout & 31));
  return true;
}

uint64_t SelectiveRepeat::take_answered() {
  uint64_t psn = window_.unacked();
  if (window_.rd_atomics_begun() == 0) return std::max(psn, own_->acknowledged);
  for (uint64_t at = window_.head(); at != window_.tail(); ++at) {
    const SendWqe& wqe = window_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= psn) continue;
    if (wqe.awaits_response()) {
      for (; psn < wqe.end_psn() && own_->has(psn); ++psn) own_->flip(psn);
    } else {
      psn = std::min(wqe.end_psn(), std::max(psn, own_->acknowledged));
    }
    if (psn < wqe.end_psn()) break;
  }
  return psn;
}

void SelectiveRepeat::note_beyond(uint64_t psn, TimeNs now) {
  own_->missing.count_arrival();
  uint64_t from = std::max(own_->top, window_.unacked());
  own_->top = std::max(own_->top, psn);
  for (uint64_t at = window_.head(); from < psn && at != window_.tail(); ++at) {
    const SendWqe& wqe = window_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= from || !wqe.awaits_response()) continue;
    note_missing(std::max(from, wqe.first_psn), std::min(psn, wqe.end_psn()), now);
  }
  if (!own_->missing.empty()) request_missing(now);
}

// Notes each run of missing PSNs from `begin` to `end` as a hole.
void SelectiveRepeat::note_missing(uint64_t begin, uint64_t end, TimeNs now) {
  while (begin < end) {
    if (has_arrived(begin)) {
      ++begin;
      continue;
    }
    uint64_t stop = begin + 1;
    while (stop < end && !has_arrived(stop)) ++stop;
    own_->missing.add(begin, stop, now, qp_.reorder_limits());
    begin = stop;
  }
}

void SelectiveRepeat::request_missing(TimeNs now) {
  // A hole that was given up is left to the time-out.
  auto ask = [&](uint64_t begin, uint64_t end, uint8_t tries) {
    begin = std::max(begin, window_.unacked());
    if (tries <= MissingPsns::kMaxTries && begin < end) schedule(begin, end);
  };
  own_->missing.drop_before(window_.unacked());
  own_->missing.nak_due(now, qp_.reorder_limits(), ask);
  if (own_->missing.due() == kNever) {
    qp_.scheduler().cancel(own_->timer);
  } else if (own_->timer.due() != own_->missing.due()) {
    qp_.scheduler().at(own_->timer, own_->missing.due());
  }
}

void SelectiveRepeat::on_missing_timer(TimeNs now) {
  if (!qp_.sends() || window_.state == RequesterState::kFailed || !active_) return;
  request_missing(now);
}

// Whether these PSNs are about to be sent again.
bool SelectiveRepeat::is_scheduled(uint64_t psn, uint64_t end) {
  WorkQueue<Retransmission>& all = own().retransmissions;
  for (uint64_t at = all.head(); at != all.tail(); ++at) {
    if (all.at(at).psn <= psn && end <= all.at(at).end) return true;
  }
  return false;
}

void SelectiveRepeat::schedule(uint64_t psn, uint64_t end) {
  WorkQueue<Retransmission>& all = own().retransmissions;
  if (is_scheduled(psn, end) || all.full()) return;  // a full queue: the PSNs are asked for again
  all.push({psn, end});
  qp_.make_data_ready();
}

bool SelectiveRepeat::probe() {
  constexpr uint32_t kMaxProbes = 2;
  if (window_.unacked() >= window_.next()) {
    qp_.make_data_ready();
    return true;
  }
  if (++own_->probes > kMaxProbes) return false;
  own_->recovery = window_.next();
  uint64_t newest = window_.next() - 1;
  const SendWqe& wqe = window_.at(window_.position_of(newest));
  if (wqe.awaits_response()) newest = wqe.first_psn;
  if (newest <= window_.unacked()) {
    retransmit_oldest();
  } else {
    schedule(newest, wqe.awaits_response() ? wqe.end_psn() : newest + 1);
  }
  return true;
}

// Schedules the oldest unanswered packet, or the missing part of the oldest response.
void SelectiveRepeat::retransmit_oldest() {
  uint64_t psn = window_.unacked(), end = psn + 1;
  const SendWqe& wqe = window_.at(window_.position_of(psn));
  if (!wqe.awaits_response()) return schedule(psn, end);
  uint64_t seen = std::min(wqe.end_psn(), psn + kMaxOutOfOrder);
  while (end < seen && !has_arrived(end)) ++end;
  schedule(psn, end == seen ? wqe.end_psn() : end);
}

// Trims PSNs that have come meanwhile. False when none is left.
bool SelectiveRepeat::trim(Retransmission& next, uint64_t& position) {
  next.psn = std::max(next.psn, window_.unacked());
  while (next.psn < next.end && has_arrived(next.psn)) ++next.psn;
  if (next.psn >= next.end || next.psn >= window_.next()) return false;
  position = window_.position_of(next.psn);
  next.end = std::min(next.end, window_.at(position).end_psn());
  return true;
}

const SelectiveRepeat::Retransmission* SelectiveRepeat::next(uint64_t& position) {
  while (has_retransmissions()) {
    Retransmission& next = own_->retransmissions.front();
    if (trim(next, position)) return &next;
    own_->retransmissions.pop();
    own_->fetch.drop();
  }
  return nullptr;
}

Prefetch::State SelectiveRepeat::fetch(const SendWqe& wqe, uint64_t position, uint64_t psn,
                                       PacketPtr& packet) {
  using State = Prefetch::State;
  Prefetch& fetch = own_->fetch;
  Prefetch::Key key{position, (psn - wqe.first_psn) * qp_.attributes().path_mtu};
  State state = fetch.state(key);
  if (state == State::kReady) packet = fetch.take();
  if (state != State::kAbsent) return state;
  fetch.drop();
  if (fetch.full()) return State::kPending;
  packet = qp_.host().pool().acquire();
  Moved moved = gather(qp_.mover(*this, 0), wqe.request.sges.entries(), key.offset,
                       window_.payload_length(wqe, key.offset), *packet, fetch.ticket());
  if (moved.pending > 0) {
    fetch.add(std::move(packet), key, moved);
    return State::kPending;
  }
  return moved.failed ? State::kFailed : State::kReady;
}

void SelectiveRepeat::memory_done(uint64_t ticket, bool ok) {
  own_->fetch.done(ticket, ok);
  if (qp_.sends() && (own_->fetch.settled() || own_->fetch.empty())) qp_.make_data_ready();
  qp_.memory_settled();
}

}  // namespace rocefs
