#include "mad_cc/mad/rmpp_sender.h"

#include <algorithm>
#include <cassert>

namespace rocefs::mad {

RmppSender::RmppSender(Message message, const Patience& patience)
    : message_(std::move(message)),
      patience_(patience),
      headers_(data_offset(message_[1])),
      per_segment_(kMadSize - headers_),
      retries_left_(patience.retries) {
  assert(message_.size() >= headers_);
  size_t data = message_.size() - headers_;
  // Message without data: one empty segment.
  segments_ = static_cast<uint32_t>(std::max<size_t>(1, (data + per_segment_ - 1) / per_segment_));
}

std::optional<Mad> RmppSender::next(TimeNs now) {
  if (abort_) {
    std::optional<Mad> abort;
    abort.swap(abort_);
    return abort;
  }
  if (ended()) return std::nullopt;
  if (now >= deadline_) {
    if (retries_left_ == 0) {
      state_ = State::kTimedOut;
      status_ = kRmppTooManyRetries;
      return rmpp_end(first_mad(message_), kRmppAbort, status_, true);
    }
    --retries_left_;
    // Closed window: the last acknowledged segment again, which asks for an ACK with a new window.
    next_ = std::min(acknowledged_ + 1, window_last_);
  }
  if (next_ > std::min(segments_, window_last_)) return std::nullopt;
  // Time-out of all unacknowledged segments, from the last transmission.
  deadline_ = now + patience_.ack_timeout_ns;
  return segment(next_++);
}

Mad RmppSender::segment(uint32_t number) const {
  Mad mad;
  size_t offset = headers_ + size_t{number - 1} * per_segment_;
  size_t data = std::min(per_segment_, message_.size() - offset);
  std::memcpy(mad.bytes.data(), message_.data(), headers_);
  std::memcpy(mad.bytes.data() + headers_, message_.data() + offset, data);
  uint8_t flags = kRmppActive;
  size_t length = 0;
  size_t class_headers = headers_ - kRmppHeaderEnd;  // counted in each segment
  if (number == 1) {
    flags |= kRmppFirst;
    length = message_.size() - headers_ + segments_ * class_headers;
  }
  if (number == segments_) {
    flags |= kRmppLast;
    length = data + class_headers;
  }
  mad.set_rmpp(kRmppData, flags, kRmppOk, number, static_cast<uint32_t>(length),
               mad.rmpp_response_time());
  return mad;
}

uint8_t RmppSender::fault(const Mad& answer) {
  if (answer.rmpp_version() != kRmppVersion) return kRmppUnsupportedVersion;
  uint8_t status = answer.rmpp_status();
  switch (answer.rmpp_type()) {
    case kRmppData:
      return kRmppOk;
    case kRmppAck:
      if (status != kRmppOk) return kRmppIllegalStatus;
      return answer.rmpp_length() < answer.rmpp_segment() ? kRmppWindowTooSmall : kRmppOk;
    case kRmppStop:
      return status == kRmppResourcesExhausted ? kRmppOk : kRmppIllegalStatus;
    case kRmppAbort:
      return status >= kRmppAbortMin && status <= kRmppAbortMax ? kRmppOk : kRmppIllegalStatus;
  }
  return kRmppBadType;
}

void RmppSender::receive(const Mad& answer) {
  if (ended()) return;
  if (uint8_t status = fault(answer)) return abort(answer, status);
  if (answer.rmpp_type() == kRmppData) return;
  if (answer.rmpp_type() == kRmppAck) return receive_ack(answer);
  state_ = State::kStopped;
  status_ = answer.rmpp_status();
}

void RmppSender::receive_ack(const Mad& ack) {
  uint32_t segment = ack.rmpp_segment(), window_last = ack.rmpp_length();
  if (segment > segments_ || segment > window_last_) return abort(ack, kRmppSegmentTooBig);
  if (window_last < window_last_ || segment < acknowledged_) return;  // overtaken by a later one
  if (segment > acknowledged_) {
    acknowledged_ = segment;
    next_ = std::max(next_, segment + 1);
    retries_left_ = patience_.retries;
  }
  window_last_ = window_last;
  if (acknowledged_ == segments_) state_ = State::kDone;
}

void RmppSender::abort(const Mad& answer, uint8_t status) {
  abort_ = rmpp_end(answer, kRmppAbort, status);
  state_ = State::kStopped;
  status_ = status;
}

}  // namespace rocefs::mad
