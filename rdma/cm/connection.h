// CmConnection: one connection between two communication managers, as a state machine (IBTA volume
// 1, 12.9). It begins with a REQ, sent by its user or received.
//
// Core thread. Made and freed by CmManager.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/loop/scheduler.h"
#include "rdma/cm/host.h"
#include "rdma/cm/message.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

enum class CmState : uint8_t {
  kIdle,
  kReqSent,
  kReqReceived,
  kRepSent,
  kRepReceived,
  kEstablished,
  kDreqSent,
  kDreqReceived,
  kTimewait,  // packets of it may still be on their way
};
std::string_view name(CmState state);

// User of a connection. May abandon the connection from within a call.
class CmUser {
 public:
  virtual ~CmUser() = default;
  virtual void replied(const cm::Rep& rep) = 0;  // ready() or reject() is to come
  virtual void established(std::span<const uint8_t> private_data) = 0;
  virtual void rejected(const cm::Rej& rej) = 0;
  // The far end does not answer: the connection is over.
  virtual void unreachable() = 0;
  // The far end has sent a DREQ, has answered one, or has left one unanswered. To the first the
  // user still owes disconnect().
  virtual void disconnected(std::span<const uint8_t> private_data) = 0;
  virtual void timewait_over() = 0;
};

class CmConnection {
 public:
  static constexpr uint8_t kResponseTimeout = 20;  // 4.3 s, as rdma_cm has it
  static constexpr uint8_t kMaxRetries = 15;
  static constexpr uint8_t kPacketLifeTime = 16;  // 268 ms
  static constexpr uint8_t kTargetAckDelay = 15;
  // Upper limit, whatever the far end says of its acknowledgement delay.
  static constexpr TimeNs kMaxTimewait = 10 * kSecond;

  CmConnection(CmHost& host, Port& port, const AddressVector& path, uint32_t local_id);
  CmConnection(const CmConnection&) = delete;
  CmConnection& operator=(const CmConnection&) = delete;

  void set_user(CmUser* user) { user_ = user; }
  bool has_user() const { return user_ != nullptr; }
  CmState state() const { return state_; }
  Port& port() const { return port_; }
  const AddressVector& path() const { return path_; }
  uint32_t local_id() const { return local_id_; }
  uint32_t remote_id() const { return remote_id_; }
  uint32_t local_qpn() const { return local_qpn_; }
  uint32_t remote_qpn() const { return remote_qpn_; }
  // REQ that was received or sent.
  const cm::Req& request() const { return req_; }

  // Actions of the user; EINVAL in a state that does not allow them. `req` has the service, the
  // queue pair and its parameters; addresses and times are filled in here.
  Result<void> send_request(cm::Req req);
  // `rep` has all but ids, CA GUID and acknowledgement delay.
  Result<void> reply(cm::Rep rep);
  Result<void> ready();
  Result<void> reject(uint16_t reason, std::span<const uint8_t> private_data);
  // Takes the first message on the queue pair for the RTU, which may have been lost.
  Result<void> establish();
  // Sends a DREQ, or the answer to one.
  Result<void> disconnect();
  // The user leaves: the far end is told, and no call comes any more.
  void abandon();
  // Ends timewait early, to make room for other connections.
  void abandon_timewait() { end(); }

  // Attributes for the transition of the queue pair to INIT, RTR or RTS. EINVAL in a state where
  // they are not known. `mask` is a QpMask.
  Result<QpAttributes> attributes(QpState to, uint32_t& mask) const;

  // Handles a message of this connection. False for a duplicate.
  bool receive(const cm::Message& message);
  // Handles a new REQ: the state becomes kReqReceived.
  void take_request(uint64_t tid, const cm::Req& req);
  // True for a retransmission of that REQ.
  bool is_again(uint64_t tid, const cm::Req& req) const;
  void answer_again();

 private:
  bool take(const cm::Rep& rep);
  bool take(const cm::Rtu& rtu);
  bool take(const cm::Rej& rej);
  bool take(const cm::Mra& mra);
  bool take(const cm::Dreq& dreq);
  bool take(const cm::Drep& drep);
  template <class Other>
  bool take(const Other&) {
    return true;
  }
  void transmit(const cm::Message& message, bool again = false);
  void transmit_until_answered(const cm::Message& message, uint8_t timeout, uint8_t retries);
  void send_reject(uint16_t reason, std::span<const uint8_t> private_data);
  void arm();
  void on_time(TimeNs now);
  void give_up();
  void end();
  void enter_timewait();
  void take_depths(uint8_t far_answers, uint8_t far_asks);
  uint8_t ack_timeout() const;

  CmHost& host_;
  Port& port_;
  const AddressVector path_;
  CmUser* user_ = nullptr;
  CmState state_ = CmState::kIdle;
  bool active_ = false;
  uint64_t tid_ = 0;
  const uint32_t local_id_;
  uint32_t remote_id_ = 0;
  uint32_t local_qpn_ = 0, remote_qpn_ = 0;
  uint32_t send_psn_ = 0, receive_psn_ = 0;
  uint8_t responder_resources_ = 0, initiator_depth_ = 0;
  uint8_t rnr_retry_count_ = 0;
  uint8_t target_ack_delay_ = 0;  // far end's
  cm::Req req_;
  cm::Message unanswered_;
  TimeNs patience_ = 0;
  uint8_t retries_left_ = 0;
  Event timer_;
};

}  // namespace rocefs
