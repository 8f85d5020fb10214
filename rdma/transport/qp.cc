#include "rdma/transport/qp.h"

#include <algorithm>
#include <cerrno>

#include "rdma/packet/datagram.h"
#include "rdma/packet/traffic_class.h"
#include "rdma/transport/qp_transitions.h"
#include "rdma/wire/ip_text.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint32_t kMaxWindow = 1u << 22;  // half of half the PSN space: no PSN is ambiguous

// A flow's UDP source port, from its two queue pairs (RoCEv2: 0xC000 to 0xFFFF carries entropy).
uint16_t source_port(uint32_t local_qpn, uint32_t remote_qpn) {
  uint64_t mixed = (uint64_t{local_qpn} << 24 | remote_qpn) * 0x9e3779b97f4a7c15;
  return static_cast<uint16_t>(wire::kFirstSourcePort | (mixed >> 50));
}

}  // namespace

Qp::Qp(QpHost& host, uint32_t number, uint64_t serial, const QpInit& init)
    : host_(host),
      port_(host.find_port(1)),
      number_(number),
      serial_(serial),
      init_(init),
      receives_(init.shared_receives ? 0 : init.receive_depth),
      requester_(*this, init.send_depth),
      responder_(*this),
      congestion_(*this) {}

Qp::~Qp() {
  port_->forget(*this);
}

Mover Qp::mover(MemoryListener& listener, uint8_t access) {
  return {host_.pool(), host_.memory(), init_.pd, number_, access, listener};
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

bool Qp::ensure_queued(const AddressVector& path) {
  size_t priority = priority_of_class(port_->class_override().apply_to(path));
  if (priority == priority_) return true;
  move_to(*port_, priority);
  return false;
}

// To the lists of another port or priority.
void Qp::move_to(QpPort& port, size_t priority) {
  port_->forget(*this);
  port_ = &port;
  priority_ = static_cast<uint8_t>(priority);
  make_data_ready();
  make_acknowledge_ready();
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
    if (to == QpState::kRtr && init_.type == QpType::kRc) mask |= kQpWindow;
    if (Result<void> moved = modify(to, attributes, mask); !moved) return moved;
  }
  return {};
}

CnpAddress Qp::cnp_address(uint32_t remote_qpn) const {
  const AddressVector& path = attributes_.path;
  return {path.local, path.remote, remote_qpn, source_port(number_, remote_qpn), 0};
}

void Qp::note_gap(uint64_t ahead) {
  const Cfr& cfr = host_.cfr();
  if (!cfr.enabled() || ahead < cfr.ooo_threshold()) return;
  port_->notify(*this, CnpCause::kOutOfOrder, cnp_address(attributes_.remote_qpn),
                scheduler().now());
}

// Datagrams bring their path with them.
void Qp::traffic_class_changed() {
  if (init_.type == QpType::kUd || state_ == QpState::kReset) return;
  header_template_ = wire::HeaderTemplate(headers_to(attributes_.path, attributes_.remote_qpn));
  uint8_t traffic_class = port_->class_override().apply_to(attributes_.path);
  congestion_.set_traffic_class(traffic_class);
  size_t priority = priority_of_class(traffic_class);
  if (priority != priority_) move_to(*port_, priority);
}

wire::Headers Qp::headers_to(const AddressVector& path, uint32_t remote_qpn) const {
  wire::Headers headers = headers_on(path, port_->class_override().apply_to(path));
  headers.udp.src_port = source_port(number_, remote_qpn);
  headers.bth.pkey = kDefaultPkey;
  headers.bth.mig_req = true;
  headers.bth.dest_qpn = remote_qpn;
  return headers;
}

// What the service cannot do, and what no packet could say.
Result<void> Qp::check_request(const SendRequest& request) const {
  bool datagram = init_.type == QpType::kUd;
  bool reliable = init_.type == QpType::kRc;
  switch (request.op) {
    case SendOp::kSend:
    case SendOp::kSendImm:
      break;
    case SendOp::kWrite:
    case SendOp::kWriteImm:
    case SendOp::kBindWindow:
    case SendOp::kLocalInvalidate:
      if (datagram) return Error{EINVAL, "UD only sends"};
      break;
    case SendOp::kSendInvalidate:
    case SendOp::kRead:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
      if (!reliable) return errorf(EINVAL, "{} has no such request", name(init_.type));
      break;
  }
  return {};
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

uint16_t Qp::next_port_offset(TimeNs now) {
  const SpraySettings& settings = host_.spraying();
  return settings.on() ? spray_.next_offset(settings, now) : uint16_t{0};
}

uint8_t Qp::selective_bit() const {
  return init_.type == QpType::kRc ? host_.selective().bit() : uint8_t{0};
}

// The reorder window is so many packets or, where no more come, twice the time that they take on
// the port's link. That is at least kLeast, since links on the way may be slower; and no more than
// a quarter of the time-out, so that the far end need not time out.
MissingPsns::ReorderLimits Qp::reorder_limits() {
  constexpr TimeNs kLeast = 200 * kMicrosecond;
  constexpr uint64_t kHeaders = wire::kIpv4Len + wire::kUdpLen + wire::kBthLen + wire::kIcrcLen;
  constexpr uint8_t kUsualTimeout = 14, kLongestTimeout = 18;
  uint8_t timeout = std::min(attributes_.timeout, kLongestTimeout);
  if (timeout == 0) timeout = kUsualTimeout;
  TimeNs quarter = (TimeNs{4096} << timeout) / 4;
  uint32_t window = host_.selective().reorder_window();
  double packet_ns = port_->receive_ns(attributes_.path_mtu + kHeaders);
  auto overtaken = static_cast<TimeNs>(2 * window * packet_ns);
  return {window, std::min(std::max(overtaken, kLeast), quarter), quarter};
}

void Qp::make_data_ready() {
  if (!congestion_.waits()) port_->add_data(*this);
}

void Qp::make_acknowledge_ready() {
  port_->add_acknowledge(*this);
}

Packet* Qp::emit_data(TimeNs now) {
  response_turn_ = !response_turn_;
  for (bool response : {response_turn_, !response_turn_}) {
    if (response && congestion_.responses_wait()) continue;
    Packet* packet = response ? responder_.emit_response() : requester_.emit(now);
    if (!packet) continue;
    congestion_.sent(*packet, response, now);
    return packet;
  }
  return nullptr;
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

void Qp::raise(QpEvent event) {
  if (event == QpEvent::kDrained && !attributes_.notify_drained) return;
  auto bit = static_cast<uint8_t>(1u << static_cast<int>(event));
  if (!init_.observer || (raised_ & bit)) return;
  raised_ |= bit;
  init_.observer->qp_event(event);
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
