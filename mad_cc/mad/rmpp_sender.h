// RmppSender: sends one message to one peer in RMPP segments (IBTA volume 1, 13.6): windows from
// ACKs, retransmission, STOP and ABORT.
//
// Sans-IO: the owner transmits the results of next(), passes in the peer's answers and calls next()
// again at deadline(). Core thread.
#pragma once

#include <optional>

#include "core/base/time.h"
#include "mad_cc/mad/rmpp.h"

namespace rocefs::mad {

class RmppSender {
 public:
  struct Patience {
    TimeNs ack_timeout_ns = 2 * kSecond;  // for an ACK: ib_mad waits as long
    uint32_t retries = 3;                 // without one that acknowledges more than the last
  };
  enum class State : uint8_t {
    kUnderWay,
    kDone,      // all is acknowledged
    kStopped,   // by the peer's STOP or ABORT, or with an ABORT for what it sent
    kTimedOut,  // every retry
  };

  // `message`: the headers of its class, data_offset() octets, which each segment repeats, then
  // data of any length. RMPP fields need not be set. A message that fits one MAD is one segment,
  // First and Last.
  explicit RmppSender(Message message) : RmppSender(std::move(message), Patience{}) {}
  RmppSender(Message message, const Patience& patience);

  // Returns the next MAD to transmit. To be called until it returns none: at first, after
  // receive(), and at deadline(). Returns a last ABORT after the message has failed.
  std::optional<Mad> next(TimeNs now);
  // Takes an ACK, STOP or ABORT with the message's TID and class. DATA of the peer's answer must
  // not be passed in.
  void receive(const Mad& answer);
  // Checks such a MAD without context. Returns kRmppOk or the RMPPStatus of the fault.
  static uint8_t fault(const Mad& answer);
  // Returns kNever once the message has ended.
  TimeNs deadline() const { return state_ == State::kUnderWay ? deadline_ : kNever; }
  State state() const { return state_; }
  bool ended() const { return state_ != State::kUnderWay; }
  uint8_t status() const { return status_; }  // RmppStatus that ended it
  uint32_t segments() const { return segments_; }
  const Message& message() const { return message_; }

 private:
  Mad segment(uint32_t number) const;
  void abort(const Mad& answer, uint8_t status);
  void receive_ack(const Mad& ack);

  Message message_;
  Patience patience_;
  size_t headers_, per_segment_;
  uint32_t segments_;
  uint32_t next_ = 1;          // segment to transmit
  uint32_t acknowledged_ = 0;  // up to that one
  uint32_t window_last_ = 1;   // the first window is one segment
  uint32_t retries_left_;
  TimeNs deadline_ = kNever;  // kNever: nothing is transmitted yet
  std::optional<Mad> abort_;  // to be transmitted
  State state_ = State::kUnderWay;
  uint8_t status_ = kRmppOk;
};

}  // namespace rocefs::mad
