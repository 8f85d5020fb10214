#include "rdma/transport/qp.h"

#include <algorithm>
#include <cerrno>

#include "rdma/packet/traffic_class.h"
#include "rdma/transport/qp_transitions.h"
#include "rdma/wire/ip_text.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

constexpr uint32_t kMaxWindow = 1u << 22;  // half of half the PSN space: no PSN is ambiguous

}  // namespace

Qp::Qp(QpHost& host, uint32_t number, uint32_t serial, const QpInit& init)
    : QpContext(*this, host, number, serial, init),
      requester_(*this, congestion_, init.send_depth),
      responder_(*this, congestion_),
      congestion_(*this) {}

Qp::~Qp() {
  port_->forget(*this);
}

Result<void> Qp::check_values(const QpAttributes& a, uint32_t mask) const {
  auto given = [&](uint32_t bit) { return (mask & bit) != 0; };
  if (given(kQpPort) && !host_.find_port(a.port)) {
    return errorf(EINVAL, "{} has no port {}", host_.name(), a.port);
  }
  if (given(kQpPathMtu) && (!valid_mtu(a.path_mtu) || a.path_mtu > port_->mtu())) {
    return errorf(EINVAL, "path MTU {} on a port with MTU {}", a.path_mtu, port_->mtu());
  }
  if (given(kQpPath) && type() != QpType::kUd && !is_unicast(a.path.remote)) {
    return errorf(EINVAL, "{} is no unicast address to connect to", ip_text(a.path.remote));
  }
  if (state_ == QpState::kSqd && given(kQpPort) &&
      host_.find_port(a.port)->mtu() < attributes_.path_mtu) {
    return errorf(EINVAL, "port {} has an MTU below the path's {}", a.port, attributes_.path_mtu);
  }
  bool bad = (given(kQpPkeyIndex) && a.pkey_index != 0) || (given(kQpTimeout) && a.timeout > 31) ||
             (given(kQpRetryCount) && a.retry_count > 7) ||
             (given(kQpRnrRetry) && a.rnr_retry > 7) ||
             (given(kQpMinRnrTimer) && a.min_rnr_timer > 31) ||
             (given(kQpWindow) && (a.window == 0 || a.window > kMaxWindow)) ||
             (given(kQpSendPsn) && a.send_psn > kPsnMask) ||
             (given(kQpReceivePsn) && a.receive_psn > kPsnMask) ||
             (given(kQpRemoteQpn) && a.remote_qpn > kPsnMask) ||
             (given(kQpMaxRdAtomic) && a.max_rd_atomic > kMaxRdAtomic) ||
             (given(kQpMaxDestRdAtomic) && a.max_dest_rd_atomic > kMaxRdAtomic);
  if (bad) return Error{EINVAL, "an attribute of the queue pair is out of range"};
  return {};
}

void Qp::assign(const QpAttributes& from, uint32_t mask) {
  QpAttributes& to = attributes_;
  auto take = [&](uint32_t bit, auto& out, const auto& in) {
    if (mask & bit) out = in;
  };
  take(kQpPkeyIndex, to.pkey_index, from.pkey_index);
  take(kQpPort, to.port, from.port);
  take(kQpAccess, to.access, from.access);
  take(kQpQkey, to.qkey, from.qkey);
  take(kQpPath, to.path, from.path);
  take(kQpPathMtu, to.path_mtu, from.path_mtu);
  take(kQpRemoteQpn, to.remote_qpn, from.remote_qpn);
  take(kQpSendPsn, to.send_psn, from.send_psn);
  take(kQpReceivePsn, to.receive_psn, from.receive_psn);
  take(kQpTimeout, to.timeout, from.timeout);
  take(kQpRetryCount, to.retry_count, from.retry_count);
  take(kQpRnrRetry, to.rnr_retry, from.rnr_retry);
  take(kQpMinRnrTimer, to.min_rnr_timer, from.min_rnr_timer);
  take(kQpMaxRdAtomic, to.max_rd_atomic, from.max_rd_atomic);
  take(kQpMaxDestRdAtomic, to.max_dest_rd_atomic, from.max_dest_rd_atomic);
  take(kQpWindow, to.window, from.window);
  take(kQpNotifyDrained, to.notify_drained, from.notify_drained);
  if (mask & kQpPort) {
    move_to(*host_.find_port(to.port), priority_);
    congestion_.refresh();
    traffic_class_changed();
  }
}

Result<void> Qp::modify(QpState to, const QpAttributes& attributes, uint32_t mask) {
  if (Result<void> checked = check_transition(init_.type, state_, to, mask); !checked) {
    return checked;
  }
  if (Result<void> checked = check_values(attributes, mask); !checked) return checked;
  if (to == QpState::kError) {
    enter_error();
    return {};
  }
  if (to == QpState::kReset) {
    reset();
    return {};
  }
  assign(attributes, mask);
  if (mask & kQpPath) traffic_class_changed();
  QpState from = state_;
  set_state(to);
  if (from == QpState::kInit && to == QpState::kRtr) responder_.start(attributes_.receive_psn);
  if (from == QpState::kRtr && to == QpState::kRts) requester_.start(attributes_.send_psn);
  if (to == QpState::kRts) make_data_ready();
  if (from == QpState::kRts && to == QpState::kSqd) {
    requester_.drain();
    attributes_.notify_drained = (mask & kQpNotifyDrained) && attributes.notify_drained;
    raised_ &= static_cast<uint8_t>(~(1u << static_cast<int>(QpEvent::kDrained)));
    if (requester_.drained()) raise(QpEvent::kDrained);
  }
  return {};
}

Result<void> Qp::bring_up(const QpAttributes& attributes) {
  for (QpState to : {QpState::kInit, QpState::kRtr, QpState::kRts}) {
    uint32_t mask = required_attributes(init_.type, state_, to);
    if (to == QpState::kRtr && reliable()) mask |= kQpWindow;
    if (Result<void> moved = modify(to, attributes, mask); !moved) return moved;
  }
  return {};
}

// Datagrams have paths of their own, which the change reaches when each is sent.
void Qp::traffic_class_changed() {
  if (init_.type == QpType::kUd || state_ == QpState::kReset) return;
  header_template_ = wire::HeaderTemplate(headers_to(attributes_.path, attributes_.remote_qpn));
  uint8_t traffic_class = port_->class_override().apply_to(attributes_.path);
  congestion_.set_traffic_class(traffic_class);
  size_t priority = priority_of_class(traffic_class);
  if (priority != priority_) move_to(*port_, priority);
}

Result<void> Qp::check_request(const SendRequest& request) const {
  if (send_op_info(request.op).is_of(init_.type)) return {};
  return errorf(EINVAL, "{} has no such request", name(init_.type));
}

Result<void> Qp::post(const SendRequest& request) {
  if (state_ == QpState::kReset || state_ == QpState::kInit || state_ == QpState::kRtr) {
    return errorf(EINVAL, "nothing can be sent in {}", name(state_));
  }
  if (Result<void> checked = check_request(request); !checked) return checked;
  return requester_.post(request);
}

Result<void> Qp::post(const ReceiveRequest& request) {
  if (state_ == QpState::kReset) return Error{EINVAL, "nothing can be received in RESET"};
  if (init_.shared_receives) return Error{EINVAL, "receives are posted to the shared queue"};
  if (Result<void> posted = receives_.post(request); !posted) return posted;
  if (state_ == QpState::kError) responder_.flush();
  return {};
}

PacketPtr Qp::emit_data(TimeNs now) {
  response_turn_ = !response_turn_;
  PacketPtr packet;
  if (!responder_.owes_response()) {
    if (congestion_.waits(false)) return packet;
    packet = requester_.emit(now);
    if (packet) congestion_.sent(*packet, false, now);
    return packet;
  }
  for (bool response : {response_turn_, !response_turn_}) {
    if (congestion_.waits(response)) continue;
    packet = response ? responder_.emit_response() : requester_.emit(now);
    if (!packet) continue;
    congestion_.sent(*packet, response, now);
    break;
  }
  return packet;
}

bool Qp::memory_pending() const {
  return responder_.memory_pending() || requester_.memory_pending();
}

void Qp::memory_settled() {
  if (!memory_pending()) host_.reap_later();
}

// A queue pair has its lines in the register pages while it can send or receive.
void Qp::set_state(QpState to) {
  bool before = receives_packets();
  state_ = to;
  bool active = receives_packets();
  if (active == before) return;
  Registers& registers = host_.registers();
  if (active) registers.prepare(number_, init_.owner);
  congestion_.refresh();
  active ? registers.activate(number_) : registers.deactivate(number_);
}

void Qp::enter_error() {
  if (state_ == QpState::kError) return;
  set_state(QpState::kError);
  requester_.flush();
  responder_.flush();
}

void Qp::enter_send_error() {
  if (state_ == QpState::kError) return;
  set_state(QpState::kSqe);
  requester_.flush();
}

void Qp::retire(CompletionSink& sink) {
  init_.observer = nullptr;
  init_.send_cq = init_.receive_cq = &sink;
  enter_error();
  reset();
  port_->forget(*this);
}

void Qp::reset() {
  set_state(QpState::kReset);
  host_.memory().forget_windows(number_);
  requester_.reset();
  responder_.reset();
  while (!receives_.empty()) receives_.take();
  raised_ = 0;
  attributes_ = {};
  header_template_ = {};
  if (priority_ != 0) move_to(*port_, 0);
  notification_point_.reset();
  congestion_.reset();
}

}  // namespace rocefs
