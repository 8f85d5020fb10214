// RmppReceiver: reassembles one message of one peer from RMPP segments (IBTA volume 1, 13.6).
// Acknowledges window by window; ends with STOP or ABORT if the segments do not agree.
//
// Sans-IO: the owner passes in the DATA segments of one transaction and transmits the returned
// replies. Core thread.
#pragma once

#include <optional>

#include "core/base/time.h"
#include "mad_cc/mad/rmpp.h"

namespace rocefs::mad {

class RmppReceiver {
 public:
  static constexpr size_t kMaxMessage = 16 << 20;  // octets
  static constexpr uint32_t kWindow = 64;          // segments
  // Time-outs of ib_mad: from the first segment to the last, and how long the segments of a
  // complete message are acknowledged again.
  static constexpr TimeNs kTotalTimeNs = 40 * kSecond, kCompleteTimeNs = 10 * kSecond;

  enum class State : uint8_t { kUnderWay, kComplete, kEnded };

  explicit RmppReceiver(TimeNs now) : deadline_(now + kTotalTimeNs) {}

  // Returns the reply to the peer: ACK, STOP, ABORT or none. `data` has type DATA and RMPP version
  // 1. Once the state is kComplete, take() returns the message.
  std::optional<Mad> receive(const Mad& data, TimeNs now);
  // Returns, at deadline(), the ABORT of an incomplete message. The receiver is to be destroyed
  // then.
  std::optional<Mad> expire();

  // Moves the message out: the headers of the first segment, then the data of all, without padding.
  // To be called once.
  Message take() { return std::move(message_); }
  State state() const { return state_; }
  TimeNs deadline() const { return deadline_; }
  // Returns the memory in use, in octets.
  size_t held() const { return message_.capacity(); }

 private:
  uint8_t disagreement(const Mad& data) const;
  void store(const Mad& data);
  std::optional<Mad> end(const Mad& data, uint8_t type, uint8_t status);
  Mad ack(const Mad& data) const;

  Message message_;
  uint64_t ahead_ = 0;     // bit N: segment received_ + 2 + N is here
  uint32_t received_ = 0;  // every segment up to that one
  uint32_t highest_ = 0;
  uint32_t window_last_ = 1;   // up to which segment the peer may transmit
  uint32_t last_ = 0;          // the segment with Last; 0: not seen
  uint64_t total_ = 0;         // PayloadLength of the first; 0: not said
  uint64_t last_payload_ = 0;  // PayloadLength of the last
  State state_ = State::kUnderWay;
  TimeNs deadline_;
};

}  // namespace rocefs::mad
