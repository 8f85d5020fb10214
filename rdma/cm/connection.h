// CmConnection: how two communication managers make, keep and end one connection, as a state
// machine (IBTA volume 1, 12.9). It begins with a REQ that its user sends, or with one that came.
//
// On the core's thread. CmManager makes them and lets them go.
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

// Who wants the connection. It may let go of it from within a call.
class CmUser {
 public:
  virtual ~CmUser() = default;
  virtual void replied(const cm::Rep& rep) = 0;  // ready() or reject() is to come
  virtual void established(std::span<const uint8_t> private_data) = 0;
  virtual void rejected(const cm::Rej& rej) = 0;
  // The far end does not answer. It is over.
  virtual void unreachable() = 0;
  // By the far end, or answered by it, or not answered. disconnect() is owed to a far end that
  // began.
  virtual void disconnected(std::span<const uint8_t> private_data) = 0;
  virtual void timewait_over() = 0;
};

class CmConnection {
 public:
  static constexpr uint8_t kResponseTimeout = 20;  // 4.3 s, as rdma_cm has it
  static constexpr uint8_t kMaxRetries = 15;
  static constexpr uint8_t kPacketLifeTime = 16;  // 268 ms
  static constexpr uint8_t kTargetAckDelay = 15;
  // However long the far end's acknowledgements may take, by what it says.
  static constexpr TimeNs kLongestTimewait = 10 * kSecond;

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
  // The REQ that came or was sent.
  const cm::Req& request() const { return req_; }

  // What the user does; EINVAL in a state that does not have it.
  // `req` says service, queue pair and its wishes; addresses and times are filled in here.
  Result<void> send_request(cm::Req req);
  // The REP but for the ids, the CA's GUID and its delay.
  Result<void> reply(cm::Rep rep);
  Result<void> ready();
  Result<void> reject(uint16_t reason, std::span<const uint8_t> private_data);
  // The first message on the queue pair came before the RTU.
  Result<void> establish();
  // A DREQ, or the answer to one.
  Result<void> disconnect();
  // The user goes; the far end is told, and nobody here is any more.
  void abandon();
  // There is no room for its timewait.
  void abandon_timewait() { end(); }

  // The attributes with which the queue pair goes to INIT, RTR or RTS. EINVAL in a state where they
  // are not known. `mask` is of QpMask.
  Result<QpAttributes> attributes(QpState to, uint32_t& mask) const;

  // What came from the far end: `received` is of this connection. False: it came again.
  bool receive(const cm::Message& message);
  // A REQ that came; then it is in kReqReceived.
  void take_request(uint64_t tid, const cm::Req& req);
  // Whether it is that one again.
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
  uint8_t target_ack_delay_ = 0;  // of the far end
  cm::Req req_;
  cm::Message unanswered_;
  TimeNs patience_ = 0;
  uint8_t retries_left_ = 0;
  Event timer_;
};

}  // namespace rocefs
