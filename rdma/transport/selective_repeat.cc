#include "rdma/transport/selective_repeat.h"

#include <algorithm>
#include <utility>

namespace rocefs {

SelectiveRepeat::Own::Own(SelectiveRepeat& repeat)
    : timer(event_of<&SelectiveRepeat::on_missing_timer>(&repeat)) {}

SelectiveRepeat::Own& SelectiveRepeat::own() {
  if (!own_) own_ = std::make_unique<Own>(*this);
  return *own_;
}

void SelectiveRepeat::start() {
  agreement_.forget();
  active_ = false;
  window_.set_reach(SendWindow::kNoLimit);
  reset();
}

bool SelectiveRepeat::choose() {
  bool may_use = qp_.host().selective().enabled() && agreement_.may_agree();
  if (may_use == active_) return false;
  active_ = may_use;
  window_.set_reach(active_ ? kMaxOutOfOrder : SendWindow::kNoLimit);
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
  own_->retransmissions.clear();
  own_->fetch.drop();
  own_->missing.clear();
  own_->top = window_.unacked();
  own_->recovery = 0;
  qp_.scheduler().cancel(own_->timer);
}

void SelectiveRepeat::reset() {
  if (!own_) return;
  drop();
  own_->arrived.clear();
  own_->acknowledged = window_.unacked();
}

void SelectiveRepeat::acknowledge(uint64_t psn) {
  own_->acknowledged = std::max(own_->acknowledged, psn);
}

void SelectiveRepeat::mark_arrived(uint64_t psn, TimeNs now) {
  own_->arrived.add(psn, window_.unacked());
  own_->missing.mark_received(psn, psn + 1, now);
}

uint64_t SelectiveRepeat::take_answered() {
  uint64_t psn = window_.unacked();
  if (window_.rd_atomics_begun() == 0) return std::max(psn, own_->acknowledged);
  for (uint64_t at = window_.head(); at != window_.tail(); ++at) {
    const SendWqe& wqe = window_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() <= psn) continue;
    if (wqe.awaits_response()) {
      for (; psn < wqe.end_psn() && has_arrived(psn); ++psn) own_->arrived.remove(psn);
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
    if (tries <= MissingPsns::kMaxTries) schedule(begin, end);
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

void SelectiveRepeat::schedule(uint64_t psn, uint64_t end) {
  own().retransmissions.add(psn, end);
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
  retransmit_oldest();
  uint64_t newest = window_.next() - 1;
  const SendWqe& wqe = window_.at(window_.position_of(newest));
  if (wqe.awaits_response()) newest = wqe.first_psn;
  if (newest > window_.unacked())
    schedule(newest, wqe.awaits_response() ? wqe.end_psn() : newest + 1);
  return true;
}

// Schedules the oldest unanswered packet, or the missing part of the oldest response.
void SelectiveRepeat::retransmit_oldest() {
  uint64_t psn = window_.unacked();
  const SendWqe& wqe = window_.at(window_.position_of(psn));
  if (!wqe.awaits_response()) return schedule(psn, psn + 1);
  schedule(psn, missing_end(psn, wqe.end_psn()));
}

// End of the missing PSNs from `psn` on, up to `end`.
uint64_t SelectiveRepeat::missing_end(uint64_t psn, uint64_t end) const {
  uint64_t beyond = window_.unacked() + own_->arrived.size();  // nothing from here on has come
  for (uint64_t at = psn; at < std::min(end, beyond); ++at) {
    if (has_arrived(at)) return at;
  }
  return end;
}

std::optional<SelectiveRepeat::Retransmission> SelectiveRepeat::next(uint64_t& position) {
  while (has_retransmissions()) {
    PsnRanges::Range range = own_->retransmissions.front();
    uint64_t psn = std::max(range.begin, window_.unacked());
    while (psn < range.end && has_arrived(psn)) ++psn;
    if (psn >= window_.next()) psn = range.end;  // sent in its turn
    if (psn != range.begin) {
      own_->retransmissions.drop_before(psn);
      own_->fetch.drop();
      continue;
    }
    position = window_.position_of(psn);
    const SendWqe& wqe = window_.at(position);
    if (!wqe.awaits_response()) return Retransmission{psn, psn + 1};
    return Retransmission{psn, missing_end(psn, std::min(range.end, wqe.end_psn()))};
  }
  return std::nullopt;
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
