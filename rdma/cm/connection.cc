#include "rdma/cm/connection.h"

#include <algorithm>
#include <cerrno>

#include "core/base/time.h"
#include "rdma/nic/port.h"
#include "rdma/packet/memory.h"

namespace rocefs {
namespace {

constexpr uint8_t kLongServiceTimeout = 24;  // 69 s: time for a program to accept

TimeNs time_of(uint8_t exponent) {
  return TimeNs{4096} << (exponent & 31);
}

uint8_t verbs_mtu(uint32_t mtu) {
  uint8_t code = 1;
  while (mtu > 256) {
    mtu /= 2;
    ++code;
  }
  return code;
}

template <size_t Size>
void fill(cm::PrivateData<Size>& to, std::span<const uint8_t> from) {
  std::copy_n(from.begin(), std::min(from.size(), Size), to.begin());
}

}  // namespace

std::string_view name(CmState state) {
  constexpr std::string_view kNames[] = {"idle",      "REQ sent",      "REQ received",
                                         "REP sent",  "REP received",  "established",
                                         "DREQ sent", "DREQ received", "timewait"};
  return kNames[static_cast<size_t>(state)];
}

CmConnection::CmConnection(CmHost& host, Port& port, const AddressVector& path, uint32_t local_id)
    : host_(host),
      port_(port),
      path_(path),
      local_id_(local_id),
      timer_(event_of<&CmConnection::on_time>(this)) {}

void CmConnection::transmit(const cm::Message& message, bool again) {
  host_.transmit(port_, path_, tid_, message, again);
}

void CmConnection::transmit_until_answered(const cm::Message& message, uint8_t timeout,
                                           uint8_t retries) {
  unanswered_ = message;
  patience_ = time_of(timeout) + 2 * time_of(kPacketLifeTime);
  retries_left_ = retries;
  transmit(unanswered_);
  arm();
}

void CmConnection::arm() {
  host_.scheduler().after(timer_, patience_);
}

void CmConnection::on_time(TimeNs) {
  if (state_ == CmState::kTimewait) {
    CmUser* user = user_;
    end();
    if (user) user->timewait_over();
    return;
  }
  if (retries_left_ == 0) return give_up();
  --retries_left_;
  transmit(unanswered_, true);
  arm();
}

// Enters timewait after an unanswered DREQ, as ib_cm does.
void CmConnection::give_up() {
  CmUser* user = user_;
  if (state_ == CmState::kDreqSent) {
    enter_timewait();
    if (user) user->disconnected({});
    return;
  }
  send_reject(cm::kTimeout, {});
  end();
  if (user) user->unreachable();
}

void CmConnection::end() {
  state_ = CmState::kIdle;
  host_.scheduler().cancel(timer_);
  host_.forget_far_end(*this);
  if (!user_) host_.release(*this);
}

void CmConnection::enter_timewait() {
  state_ = CmState::kTimewait;
  patience_ = std::min(time_of(ack_timeout()), kMaxTimewait);
  arm();
  host_.note_timewait(*this);
}

Result<void> CmConnection::send_request(cm::Req req) {
  if (state_ != CmState::kIdle) return errorf(EINVAL, "the connection is {}", name(state_));
  active_ = true;
  tid_ = host_.next_tid();
  req.local_id = local_id_;
  req.ca_guid = host_.guid();
  req.remote_response_timeout = req.local_response_timeout = kResponseTimeout;
  req.max_cm_retries = kMaxRetries;
  req.pkey = 0xffff;
  req.path_mtu = verbs_mtu(port_.mtu());
  req.primary.local_lid = req.primary.remote_lid = 0xffff;  // RoCE has none
  req.primary.local_gid = path_.local;
  req.primary.remote_gid = path_.remote;
  req.primary.traffic_class = path_.traffic_class;
  req.primary.hop_limit = path_.hop_limit;
  if (req.primary.local_ack_timeout == 0) req.primary.local_ack_timeout = kPacketLifeTime + 1;
  req_ = req;
  local_qpn_ = req.qpn;
  receive_psn_ = req.starting_psn;
  responder_resources_ = req.responder_resources;
  initiator_depth_ = req.initiator_depth;
  rnr_retry_count_ = req.rnr_retry_count;
  state_ = CmState::kReqSent;
  transmit_until_answered(req_, kResponseTimeout, kMaxRetries);
  return {};
}

// Depths of one end are the limits of the other (IBTA 12.7.29, 12.7.30), and at most this NIC's.
void CmConnection::take_depths(uint8_t far_answers, uint8_t far_asks) {
  initiator_depth_ = std::min(far_answers, kMaxRdAtomic);
  responder_resources_ = std::min(far_asks, kMaxRdAtomic);
}

void CmConnection::take_request(uint64_t tid, const cm::Req& req) {
  tid_ = tid;
  req_ = req;
  remote_id_ = req.local_id;
  remote_qpn_ = req.qpn;
  send_psn_ = req.starting_psn;
  take_depths(req.responder_resources, req.initiator_depth);
  rnr_retry_count_ = req.rnr_retry_count;
  receive_psn_ = host_.random_psn();
  state_ = CmState::kReqReceived;
}

bool CmConnection::is_again(uint64_t tid, const cm::Req& req) const {
  return !active_ && tid == tid_ && req.qpn == req_.qpn && req.starting_psn == req_.starting_psn;
}

// Answers a retransmitted REQ: with MRA while the program takes longer than the far end expected,
// or with the REP, which may have been lost.
void CmConnection::answer_again() {
  if (state_ == CmState::kReqReceived) {
    transmit(cm::Mra{local_id_, remote_id_, cm::About::kReq, kLongServiceTimeout, {}});
  } else if (state_ == CmState::kRepSent) {
    transmit(unanswered_, true);
  }
}

Result<void> CmConnection::reply(cm::Rep rep) {
  if (state_ != CmState::kReqReceived) return errorf(EINVAL, "the connection is {}", name(state_));
  rep.local_id = local_id_;
  rep.remote_id = remote_id_;
  rep.ca_guid = host_.guid();
  rep.target_ack_delay = kTargetAckDelay;
  rep.starting_psn = receive_psn_;
  local_qpn_ = rep.qpn;
  responder_resources_ = rep.responder_resources;
  initiator_depth_ = rep.initiator_depth;
  state_ = CmState::kRepSent;
  transmit_until_answered(rep, req_.local_response_timeout, req_.max_cm_retries);
  return {};
}

Result<void> CmConnection::ready() {
  if (state_ != CmState::kRepReceived) return errorf(EINVAL, "the connection is {}", name(state_));
  state_ = CmState::kEstablished;
  transmit(cm::Rtu{local_id_, remote_id_, {}});
  return {};
}

Result<void> CmConnection::establish() {
  if (state_ == CmState::kEstablished) return Error{EISCONN, "the connection is established"};
  if (state_ != CmState::kRepSent) return errorf(EINVAL, "the connection is {}", name(state_));
  state_ = CmState::kEstablished;
  host_.scheduler().cancel(timer_);
  if (user_) user_->established({});
  return {};
}

void CmConnection::send_reject(uint16_t reason, std::span<const uint8_t> private_data) {
  cm::Rej rej{local_id_, remote_id_};
  bool about_rep = state_ == CmState::kRepReceived;
  bool about_req = state_ == CmState::kReqReceived;
  rej.about = about_rep ? cm::About::kRep : about_req ? cm::About::kReq : cm::About::kOther;
  rej.reason = reason;
  // CA GUID: the far end may know no id of ours yet (IBTA 12.6.7.2).
  if (reason == cm::kTimeout) {
    rej.info_length = sizeof(uint64_t);
    for (size_t i = 0; i < sizeof(uint64_t); ++i) {
      rej.info[i] = static_cast<uint8_t>(host_.guid() >> (56 - 8 * i));
    }
  }
  fill(rej.private_data, private_data);
  transmit(rej);
}

Result<void> CmConnection::reject(uint16_t reason, std::span<const uint8_t> private_data) {
  switch (state_) {
    case CmState::kReqSent:
    case CmState::kReqReceived:
    case CmState::kRepSent:
    case CmState::kRepReceived:
      send_reject(reason, private_data);
      end();
      return {};
    default:
      return errorf(EINVAL, "the connection is {}", name(state_));
  }
}

Result<void> CmConnection::disconnect() {
  switch (state_) {
    case CmState::kEstablished:
      state_ = CmState::kDreqSent;
      transmit_until_answered(cm::Dreq{local_id_, remote_id_, remote_qpn_, {}},
                              req_.remote_response_timeout, req_.max_cm_retries);
      return {};
    case CmState::kDreqReceived:
      transmit(cm::Drep{local_id_, remote_id_, {}});
      enter_timewait();
      return {};
    default:
      return errorf(EINVAL, "the connection is {}", name(state_));
  }
}

void CmConnection::abandon() {
  user_ = nullptr;
  switch (state_) {
    case CmState::kIdle:
      return host_.release(*this);
    case CmState::kReqSent:
      send_reject(cm::kTimeout, {});
      return end();
    case CmState::kReqReceived:
    case CmState::kRepSent:
    case CmState::kRepReceived:
      send_reject(cm::kConsumerReject, {});
      return end();
    case CmState::kEstablished:
    case CmState::kDreqReceived:
      (void)!disconnect();
      return enter_timewait();
    case CmState::kDreqSent:
      return enter_timewait();
    case CmState::kTimewait:
      return;
  }
}

// Follows cm_ack_timeout() of ib_cm: the far end's delay plus twice the packet lifetime.
uint8_t CmConnection::ack_timeout() const {
  uint8_t timeout = req_.primary.local_ack_timeout;
  if (!active_ || target_ack_delay_ == 0) return timeout;
  if (timeout >= target_ack_delay_) {
    timeout = static_cast<uint8_t>(timeout + (target_ack_delay_ >= timeout - 1));
  } else {
    timeout = static_cast<uint8_t>(target_ack_delay_ + (timeout >= target_ack_delay_ - 1));
  }
  return std::min<uint8_t>(timeout, 31);
}

Result<QpAttributes> CmConnection::attributes(QpState to, uint32_t& mask) const {
  QpAttributes a;
  bool known = state_ != CmState::kIdle && state_ != CmState::kReqSent;
  if (state_ == CmState::kIdle || (to != QpState::kInit && !known)) {
    return errorf(EINVAL, "the connection is {}", name(state_));
  }
  a.port = port_.number();
  a.access = kRemoteWrite;
  if (responder_resources_ > 0) a.access |= kRemoteRead | kRemoteAtomic;
  a.path = path_;
  a.path_mtu = std::min(uint32_t{128} << req_.path_mtu, port_.mtu());
  a.remote_qpn = remote_qpn_;
  a.receive_psn = receive_psn_;
  a.send_psn = send_psn_;
  a.max_dest_rd_atomic = responder_resources_;
  a.max_rd_atomic = initiator_depth_;
  a.min_rnr_timer = 0;
  a.timeout = ack_timeout();
  a.retry_count = req_.retry_count;
  a.rnr_retry = rnr_retry_count_;
  switch (to) {
    case QpState::kInit:
      mask = kQpAccess | kQpPkeyIndex | kQpPort;
      return a;
    case QpState::kRtr:
      mask =
          kQpPath | kQpPathMtu | kQpRemoteQpn | kQpReceivePsn | kQpMaxDestRdAtomic | kQpMinRnrTimer;
      return a;
    case QpState::kRts:
      mask = kQpSendPsn | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpMaxRdAtomic;
      return a;
    default:
      return Error{EINVAL, "only INIT, RTR and RTS have attributes of the connection"};
  }
}

bool CmConnection::receive(const cm::Message& message) {
  return std::visit([this](const auto& m) { return take(m); }, message);
}

bool CmConnection::take(const cm::Rep& rep) {
  if (state_ == CmState::kEstablished && active_)
    transmit(cm::Rtu{local_id_, remote_id_, {}}, true);
  if (state_ == CmState::kRepReceived) {
    transmit(cm::Mra{local_id_, remote_id_, cm::About::kRep, kLongServiceTimeout, {}});
  }
  if (state_ != CmState::kReqSent) return false;
  remote_id_ = rep.local_id;
  remote_qpn_ = rep.qpn;
  send_psn_ = rep.starting_psn;
  take_depths(rep.responder_resources, rep.initiator_depth);
  rnr_retry_count_ = rep.rnr_retry_count;
  target_ack_delay_ = rep.target_ack_delay;
  state_ = CmState::kRepReceived;
  host_.scheduler().cancel(timer_);
  host_.note_far_end(*this);
  if (user_) user_->replied(rep);
  return true;
}

bool CmConnection::take(const cm::Rtu& rtu) {
  if (state_ != CmState::kRepSent) return false;
  state_ = CmState::kEstablished;
  host_.scheduler().cancel(timer_);
  if (user_) user_->established(rtu.private_data);
  return true;
}

bool CmConnection::take(const cm::Rej& rej) {
  CmUser* user = user_;
  switch (state_) {
    case CmState::kReqSent:
    case CmState::kReqReceived:
    case CmState::kRepSent:
    case CmState::kRepReceived:
      end();
      break;
    case CmState::kEstablished:
      enter_timewait();
      break;
    case CmState::kDreqSent:
      enter_timewait();
      if (user) user->disconnected({});
      return true;
    default:
      return false;
  }
  if (user) user->rejected(rej);
  return true;
}

// Extends the time-out: the far end has the message, and answers later.
bool CmConnection::take(const cm::Mra& mra) {
  bool of_req = state_ == CmState::kReqSent && mra.about == cm::About::kReq;
  bool of_rep = state_ == CmState::kRepSent && mra.about == cm::About::kRep;
  if (!of_req && !of_rep) return false;
  host_.scheduler().after(timer_, time_of(mra.service_timeout) + patience_);
  return true;
}

bool CmConnection::take(const cm::Dreq& dreq) {
  if (dreq.remote_qpn != local_qpn_) return true;
  CmUser* user = user_;
  switch (state_) {
    case CmState::kIdle:  // beyond timewait
    case CmState::kTimewait:
      transmit(cm::Drep{local_id_, remote_id_, {}}, true);
      return false;
    case CmState::kDreqSent:  // both ends at once
      transmit(cm::Drep{local_id_, remote_id_, {}});
      enter_timewait();
      break;
    case CmState::kRepSent:
    case CmState::kEstablished:
      host_.scheduler().cancel(timer_);
      state_ = CmState::kDreqReceived;
      break;
    default:
      return false;
  }
  if (user) user->disconnected(dreq.private_data);
  return true;
}

bool CmConnection::take(const cm::Drep& drep) {
  if (state_ != CmState::kDreqSent) return false;
  CmUser* user = user_;
  enter_timewait();
  if (user) user->disconnected(drep.private_data);
  return true;
}

}  // namespace rocefs
