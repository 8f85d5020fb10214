#include "mad_cc/mad/rmpp_receiver.h"

#include <algorithm>

namespace rocefs::mad {

std::optional<Mad> RmppReceiver::receive(const Mad& data, TimeNs now) {
  if (state_ == State::kEnded) return std::nullopt;
  if (state_ == State::kComplete) return ack(data);  // the last ACK was lost
  if (uint8_t status = disagreement(data)) return end(data, kRmppAbort, status);
  uint32_t segment = data.rmpp_segment();
  if (segment > window_last_) return std::nullopt;
  size_t per_segment = kMadSize - data_offset(data.mgmt_class());
  uint64_t octets = uint64_t{segment} * per_segment;
  if (segment == 1) octets = std::max<uint64_t>(octets, data.rmpp_length());
  if (octets > kMaxMessage) return end(data, kRmppStop, kRmppResourcesExhausted);

  bool known = segment <= received_ ||
               (segment >= received_ + 2 && (ahead_ >> (segment - received_ - 2) & 1) != 0);
  if (known) return ack(data);
  uint32_t received_before = received_;
  store(data);
  if (received_ == last_ && last_ != 0) {
    // Total length in the first segment must match the sum.
    uint64_t whole = uint64_t{last_ - 1} * kRmppPayload + last_payload_;
    if (last_ > 1 && total_ != 0 && total_ != whole) return end(data, kRmppAbort, kRmppBadLength);
    size_t headers = data_offset(data.mgmt_class());
    message_.resize(headers + (last_ - 1) * per_segment + last_payload_ -
                    (headers - kRmppHeaderEnd));
    state_ = State::kComplete;
    deadline_ = now + kCompleteTimeNs;
    return ack(data);
  }
  if (received_before == 0 || received_ == window_last_) {
    window_last_ = received_ + kWindow;
    return ack(data);
  }
  return std::nullopt;
}

// Returns the RMPPStatus (13.6.2.1) of a segment's fault, by itself or beside earlier segments.
uint8_t RmppReceiver::disagreement(const Mad& data) const {
  uint32_t segment = data.rmpp_segment(), length = data.rmpp_length();
  bool first = (data.rmpp_flags() & kRmppFirst) != 0, last = (data.rmpp_flags() & kRmppLast) != 0;
  if (data.rmpp_status() != kRmppOk) return kRmppIllegalStatus;
  if (segment == 0 || first != (segment == 1)) return kRmppBadSegment;
  if (last_ != 0 && (segment > last_ || last != (segment == last_))) return kRmppBadSegment;
  if (last && segment < highest_) return kRmppBadSegment;
  size_t headers = data_offset(data.mgmt_class()) - kRmppHeaderEnd;
  if (last && (length < headers || length > kRmppPayload)) return kRmppBadLength;
  if (first && !last && length != 0 && length <= kRmppPayload) return kRmppBadLength;
  uint64_t payload_before = uint64_t{segment} * kRmppPayload;
  if (!first && !last && total_ != 0 && payload_before >= total_) return kRmppBadLength;
  return kRmppOk;
}

void RmppReceiver::store(const Mad& data) {
  size_t headers = data_offset(data.mgmt_class()), per_segment = kMadSize - headers;
  uint32_t segment = data.rmpp_segment();
  size_t end = headers + size_t{segment} * per_segment;
  if (message_.size() < end) message_.resize(end);
  highest_ = std::max(highest_, segment);
  std::memcpy(message_.data() + end - per_segment, data.bytes.data() + headers, per_segment);
  if ((data.rmpp_flags() & kRmppLast) != 0) {
    last_ = segment;
    last_payload_ = data.rmpp_length();
  }
  if (segment == 1) {
    std::memcpy(message_.data(), data.bytes.data(), headers);
    total_ = data.rmpp_length();
  }
  if (segment != received_ + 1) {
    ahead_ |= uint64_t{1} << (segment - received_ - 2);
    return;
  }
  ++received_;
  for (; (ahead_ & 1) != 0; ahead_ >>= 1) ++received_;
  ahead_ >>= 1;  // bit 0 was the segment after received_, and is not here
}

std::optional<Mad> RmppReceiver::end(const Mad& data, uint8_t type, uint8_t status) {
  state_ = State::kEnded;
  Message().swap(message_);  // an assignment would keep the memory
  return rmpp_end(data, type, status);
}

Mad RmppReceiver::ack(const Mad& data) const {
  Mad ack = rmpp_end(data, kRmppAck, kRmppOk);
  ack.set_rmpp(kRmppAck, kRmppActive, kRmppOk, received_, std::max(window_last_, received_));
  return ack;
}

std::optional<Mad> RmppReceiver::expire() {
  if (state_ != State::kUnderWay || message_.empty()) return std::nullopt;
  Mad first = first_mad(message_);
  (void)end(first, kRmppAbort, kRmppTotalTimeTooLong);
  return rmpp_end(first, kRmppAbort, kRmppTotalTimeTooLong);
}

}  // namespace rocefs::mad
