#include "rdma/transport/send_window.h"

#include <algorithm>
#include <cassert>

#include "rdma/wire/psn.h"

namespace rocefs {

SendWindow::~SendWindow() {
  qp_.host().outstanding().requests -= static_cast<int64_t>(queue_.size());
}

void SendWindow::start(uint32_t psn) {
  unacked_psn_ = next_psn_ = max_sent_psn_ = kPsnBase + psn;
  limit_ = kNoLimit;
}

void SendWindow::push(const SendRequest& request) {
  SendWqe& wqe = queue_.claim();
  wqe.length = request.sges.length();
  wqe.first_psn = wqe.packets = 0;
  wqe.begun = false;
  wqe.traits = send_op_info(request.op).traits;
  wqe.failure = WcStatus::kSuccess;
  wqe.placing = wqe.in_flight = 0;
  constexpr uint8_t kNotPlain =
      ROCEFS_READ_RESPONSE | ROCEFS_ATOMIC_RESPONSE | ROCEFS_EIGHT_OCTETS | ROCEFS_LOCAL;
  wqe.plain = wqe.sends_payload() && !wqe.has(kNotPlain) && !request.malformed && !request.fence &&
              request.sges.entries().size() == 1 && wqe.length > 0 && wqe.length <= kMaxMessage;
  wqe.request = request;
  ++qp_.host().outstanding().requests;
}

void SendWindow::pop() {
  const SendWqe& wqe = queue_.front();
  if (wqe.awaits_response() && wqe.begun) {
    --rd_atomics_begun_;
    if (cursor_ != queue_.head()) --rd_atomics_sent_;
  }
  if (cursor_ == queue_.head()) ++cursor_;
  queue_.pop();
  --qp_.host().outstanding().requests;
}

void SendWindow::clear() {
  qp_.host().outstanding().requests -= static_cast<int64_t>(queue_.size());
  while (!queue_.empty()) queue_.pop();
  cursor_ = queue_.tail();
  rd_atomics_begun_ = rd_atomics_sent_ = 0;
  state = RequesterState::kSending;
}

void SendWindow::begin() {
  SendWqe& wqe = current();
  wqe.begun = true;
  wqe.first_psn = next_psn_;
  wqe.first_octet = octets_begun_;
  if (wqe.is_local()) return;
  if (!wqe.awaits_response()) octets_begun_ += wqe.length;
  bool one = qp_.type() == QpType::kUd || wqe.has(ROCEFS_EIGHT_OCTETS);
  wqe.packets = one ? 1 : psns_of(wqe.length, qp_.attributes().path_mtu);
  rd_atomics_begun_ += wqe.awaits_response();
}

bool SendWindow::packet_sent() {
  const SendWqe& wqe = current();
  next_psn_ = wqe.awaits_response() ? wqe.end_psn() : next_psn_ + 1;
  max_sent_psn_ = std::max(max_sent_psn_, next_psn_);
  if (next_psn_ != wqe.end_psn()) return false;
  ++cursor_;
  rd_atomics_sent_ += wqe.awaits_response();
  return true;
}

void SendWindow::rewind(uint64_t psn) {
  assert(psn >= unacked_psn_ && psn <= max_sent_psn_);
  next_psn_ = psn;
  cursor_ = queue_.head();
  rd_atomics_sent_ = 0;
  while (cursor_ != queue_.tail()) {
    const SendWqe& wqe = queue_.at(cursor_);
    if (!wqe.begun || psn < wqe.end_psn()) break;
    rd_atomics_sent_ += wqe.awaits_response();
    ++cursor_;
  }
}

uint64_t SendWindow::position_of(uint64_t psn) const {
  uint64_t position = queue_.head();
  while (queue_.at(position).end_psn() <= psn) ++position;
  return position;
}

uint64_t SendWindow::answerable_before(uint64_t psn) const {
  if (rd_atomics_begun_ == 0) return psn;
  for (uint64_t at = queue_.head(); at != queue_.tail(); ++at) {
    const SendWqe& wqe = queue_.at(at);
    if (!wqe.begun || wqe.first_psn >= psn) break;
    if (wqe.awaits_response() && wqe.end_psn() > unacked_psn_) {
      return std::min(psn, std::max(wqe.first_psn, unacked_psn_));
    }
  }
  return psn;
}

uint64_t SendWindow::octets_before(const SendWqe& wqe, uint64_t psn) const {
  if (wqe.awaits_response()) return wqe.first_octet;
  return wqe.first_octet + std::min(wqe.length, (psn - wqe.first_psn) * qp_.attributes().path_mtu);
}

uint64_t SendWindow::octets_in_flight(const SendWqe& wqe) const {
  if (next_psn_ == unacked_psn_) return 0;
  const SendWqe& oldest = queue_.at(position_of(unacked_psn_));
  return octets_before(wqe, next_psn_) - octets_before(oldest, unacked_psn_);
}

uint64_t SendWindow::octets_sent() const {
  bool within = cursor_ != queue_.tail() && queue_.at(cursor_).begun;
  return within ? octets_before(queue_.at(cursor_), next_psn_) : octets_begun_;
}

uint64_t SendWindow::octets_acknowledged() const {
  for (uint64_t at = queue_.head(); at != queue_.tail(); ++at) {
    const SendWqe& wqe = queue_.at(at);
    if (!wqe.begun) break;
    if (wqe.end_psn() > unacked_psn_)
      return octets_before(wqe, std::max(unacked_psn_, wqe.first_psn));
  }
  return octets_begun_;
}

uint32_t SendWindow::payload_length(const SendWqe& wqe, uint64_t offset) const {
  uint64_t most = qp_.type() == QpType::kUd ? wqe.length : qp_.attributes().path_mtu;
  return static_cast<uint32_t>(std::min(most, wqe.length - offset));
}

bool SendWindow::front_done() const {
  if (cursor_ == queue_.head()) return false;  // not all of it is sent
  const SendWqe& wqe = queue_.at(queue_.head());
  if (!qp_.reliable()) return wqe.in_flight == 0;
  return wqe.end_psn() <= unacked_psn_;
}

}  // namespace rocefs
