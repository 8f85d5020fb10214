#include "rdma/cm/id.h"

#include <algorithm>
#include <cerrno>

#include "rdma/cm/manager.h"
#include "rdma/nic/port.h"

namespace rocefs {
namespace {

std::vector<uint8_t> copy(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

// IBTA A11.2: port space and port; IB addresses name the service themselves.
uint64_t service_of(PortSpace space, const CmAddress& address) {
  if (address.family == CmAddress::Family::kIb) return address.service_id;
  return uint64_t{static_cast<uint16_t>(space)} << 16 | address.port;
}

}  // namespace

CmId::CmId(CmIdHost& host, PortSpace space, QpType type, CmIdUser& user, CmScope scope)
    : host_(host),
      serial_(host.add(*this)),
      scope_(std::move(scope)),
      space_(space),
      type_(type),
      user_(&user),
      query_over_(event_of<&CmId::query_over>(this)) {}

CmId::~CmId() {
  release();
  host_.remove(*this);
}

void CmId::release() {
  if (CmConnection* connection = std::exchange(connection_, nullptr)) connection->abandon();
  if (Sidr* question = std::exchange(question_, nullptr)) question->abandon();
}

Result<void> CmId::check(bool allowed) const {
  if (allowed) return {};
  if (state_ == State::kGone) return Error{ENODEV, "the device has left"};
  return Error{EINVAL, "the id is in another state"};
}

uint64_t CmId::service_id() const {
  return service_of(space_, local_);
}

uint64_t CmId::remote_service_id() const {
  return service_of(space_, remote_);
}

void CmId::raise_failure(CmEventType type, int32_t status) {
  raise({type, status});
}

void CmId::set_ends(Port& port, const CmAddress& local, const CmAddress& remote) {
  port_ = &port;
  local_ = local;
  remote_ = remote;
  path_.local = local.ip;
  path_.remote = remote.ip;
}

Result<void> CmId::bind(const CmAddress& address) {
  if (Result<void> fit = check(state_ == State::kIdle); !fit) return fit;
  if (address.family == CmAddress::Family::kNone) {
    return Error{EAFNOSUPPORT, "neither IPv4, IPv6 nor IB"};
  }
  Port* port = address.any() ? nullptr : host_.port_at(address.ip, scope_);
  if (!port && !address.any() && !address.loopback()) {
    return Error{ENODEV, "no device has this address"};
  }
  CmAddress taken = address;
  if (Result<void> bound = host_.bind(*this, taken); !bound) return bound;
  local_ = taken;
  port_ = port;
  state_ = State::kBound;
  return {};
}

Result<void> CmId::resolve_address(const CmAddress& source, const CmAddress& destination,
                                   TimeNs patience) {
  if (state_ == State::kIdle) {
    CmAddress any = source;
    if (source.family == CmAddress::Family::kNone) {
      bool ipv4 = destination.family == CmAddress::Family::kIpv4;
      any = {destination.family, ipv4 ? mapped_ipv4({0, 0, 0, 0}) : Ip{}, 0, 0};
    }
    if (Result<void> bound = bind(any); !bound) return bound;
  }
  if (Result<void> fit = check(state_ == State::kBound); !fit) return fit;
  if (destination.family != local_.family) return Error{EINVAL, "addresses of two families"};
  CmAddress from = local_, to = destination;
  CmWay way = host_.resolve(from, to, scope_);
  if (!way.port) return errorf(ENETUNREACH, "no route to {}", text_of(destination));
  query_ = {way.port, from, to, query_.attempt + 1};
  state_ = State::kAddressQuery;
  if (way.reach == CmWay::Reach::kKnown) {
    end_query(0);
  } else {
    await_address(way, patience);
  }
  return {};
}

void CmId::await_address(const CmWay& way, TimeNs patience) {
  host_.scheduler().after(query_over_, patience);
  if (way.reach != CmWay::Reach::kOutside) return;
  host_.search(*this, query_.attempt, query_.local.ip, query_.remote.ip, patience);
}

void CmId::searched(uint32_t attempt, int error) {
  if (state_ == State::kAddressQuery && attempt == query_.attempt) end_query(error);
}

// addr_handler() of Linux: a failure leaves the id bound.
void CmId::end_query(int error) {
  host_.scheduler().cancel(query_over_);
  if (error == 0 && !query_.port->host().present()) error = ENODEV;
  state_ = error == 0 ? State::kAddressResolved : State::kBound;
  if (error != 0) return raise_failure(CmEventType::kAddressError, -error);
  set_ends(*query_.port, query_.local, query_.remote);
  raise({CmEventType::kAddressResolved});
}

Result<void> CmId::resolve_route() {
  if (Result<void> fit = check(state_ == State::kAddressResolved); !fit) return fit;
  state_ = State::kRouteResolved;
  raise({CmEventType::kRouteResolved});
  return {};
}

size_t CmId::header_size() const {
  return local_.family == CmAddress::Family::kIb ? 0 : cm::IpHeader::kSize;
}

Result<void> CmId::put_private_data(const CmParameters& parameters, std::span<uint8_t> out) const {
  if (header_size() + parameters.private_data.size() > out.size()) {
    return errorf(EINVAL, "{} octets of private data, {} fit", parameters.private_data.size(),
                  out.size() - header_size());
  }
  if (header_size() > 0) cm::emit_ip_header({local_.port, local_.ip, remote_.ip}, out);
  std::copy(parameters.private_data.begin(), parameters.private_data.end(),
            out.begin() + static_cast<long>(header_size()));
  return {};
}

Result<void> CmId::connect(const CmParameters& p) {
  if (Result<void> fit = check(state_ == State::kRouteResolved); !fit) return fit;
  if (type_ == QpType::kUd) return connect_datagrams(p);
  cm::Req req;
  if (Result<void> put = put_private_data(p, req.private_data); !put) return put;
  req.service_id = remote_service_id();
  req.qpn = p.qpn & 0xffffff;
  req.transport = type_ == QpType::kUc ? 1 : 0;
  req.responder_resources = p.responder_resources;
  req.initiator_depth = p.initiator_depth;
  req.flow_control = p.flow_control;
  req.retry_count = std::min<uint8_t>(p.retry_count, 7);
  req.rnr_retry_count = std::min<uint8_t>(p.rnr_retry_count, 7);
  req.srq = p.srq;
  CmManager& manager = host_.manager(port_->host());
  req.starting_psn = manager.random_psn();
  req.primary.local_ack_timeout = ack_timeout_;
  connection_ = manager.connect(*port_, path_);
  if (!connection_) return Error{ENOMEM, "the device has as many connections as it may"};
  connection_->set_user(this);
  state_ = State::kConnect;
  return connection_->send_request(req);
}

Result<void> CmId::connect_datagrams(const CmParameters& p) {
  cm::SidrReq req;
  if (Result<void> put = put_private_data(p, req.private_data); !put) return put;
  req.service_id = remote_service_id();
  question_ = host_.manager(port_->host()).question(*port_, path_);
  if (!question_) return Error{ENOMEM, "the device asks as many questions as it may"};
  state_ = State::kConnect;
  question_->ask(req, *this);
  return {};
}

Result<void> CmId::listen() {
  if (state_ == State::kIdle) {
    if (Result<void> bound = bind({CmAddress::Family::kIpv4, {}, 0, 0}); !bound) return bound;
  }
  if (Result<void> fit = check(state_ == State::kBound); !fit) return fit;
  if (Result<void> begun = host_.listen(*this); !begun) return begun;
  state_ = State::kListen;
  return {};
}

Result<void> CmId::answer_question(uint8_t status, const CmParameters& p) {
  cm::SidrRep rep;
  if (p.private_data.size() > rep.private_data.size()) {
    return Error{EINVAL, "the private data does not fit"};
  }
  rep.status = status;
  rep.qpn = p.qpn & 0xffffff;
  rep.qkey = p.qkey ? p.qkey : kUdpQkey;
  std::copy(p.private_data.begin(), p.private_data.end(), rep.private_data.begin());
  Result<void> answered = question_->answer(rep);
  if (answered) qkey_ = rep.qkey;
  return answered;
}

Result<void> CmId::accept(const std::optional<CmParameters>& p) {
  if (Result<void> fit = check(state_ == State::kConnect); !fit) return fit;
  if (question_) return answer_question(cm::kSidrValid, p.value_or(CmParameters{}));
  if (!connection_) return Error{EINVAL, "there is no connection"};
  if (!p) return connection_->ready();
  cm::Rep rep;
  if (p->private_data.size() > rep.private_data.size()) {
    return Error{EINVAL, "the private data does not fit"};
  }
  rep.qpn = p->qpn & 0xffffff;
  rep.responder_resources = p->responder_resources;
  rep.initiator_depth = p->initiator_depth;
  rep.flow_control = p->flow_control;
  rep.rnr_retry_count = std::min<uint8_t>(p->rnr_retry_count, 7);
  rep.srq = p->srq;
  std::copy(p->private_data.begin(), p->private_data.end(), rep.private_data.begin());
  return connection_->reply(rep);
}

Result<void> CmId::reject(uint8_t reason, std::span<const uint8_t> private_data) {
  if (Result<void> fit = check(state_ == State::kConnect); !fit) return fit;
  if (question_) {
    CmParameters p;
    p.private_data = copy(private_data);
    return answer_question(cm::kSidrReject, p);
  }
  if (!connection_) return Error{EINVAL, "there is no connection"};
  if (private_data.size() > cm::Rej{}.private_data.size()) {
    return Error{EINVAL, "the private data does not fit"};
  }
  return connection_->reject(reason ? reason : uint16_t{cm::kConsumerReject}, private_data);
}

// No error for a connection that is already over, as in rdma_cm.
Result<void> CmId::disconnect() {
  if (!connection_) return Error{EINVAL, "there is no connection"};
  (void)!connection_->disconnect();
  return {};
}

Result<void> CmId::communication_established() {
  if (!connection_) return Error{EINVAL, "there is no connection"};
  return connection_->establish();
}

// Makes INIT possible without a connection: it needs the port alone.
Result<QpAttributes> CmId::attributes(QpState to, uint32_t& mask) const {
  if (!port_) return Error{EINVAL, "the id has no device"};
  if (connection_ && type_ != QpType::kUd) {
    Result<QpAttributes> known = connection_->attributes(to, mask);
    if (known && ack_timeout_ > 0) known->timeout = ack_timeout_;
    return known;
  }
  if (to != QpState::kInit) return Error{EINVAL, "there is no connection"};
  QpAttributes a;
  a.port = port_->number();
  a.qkey = qkey_ ? qkey_ : kUdpQkey;
  mask = kQpPkeyIndex | kQpPort | (type_ == QpType::kUd ? kQpQkey : kQpAccess);
  return a;
}

void CmId::set_traffic_class(uint8_t traffic_class) {
  path_.traffic_class = traffic_class;
}

Result<void> CmId::set_reuse_address(bool on) {
  if (Result<void> fit = check(state_ == State::kIdle || on); !fit) return fit;
  reuses_address_ = on;
  return {};
}

// cma_iboe_join_multicast() and cma_iboe_set_mgid() of Linux, for RoCEv2.
Result<CmEvent> CmId::join(const CmAddress& group) const {
  bool ready = state_ == State::kBound || state_ == State::kAddressResolved;
  if (type_ != QpType::kUd || !ready || !port_) {
    return Error{EINVAL, "groups are joined by an id of UD that is bound to a device"};
  }
  if (group.family != local_.family || !is_multicast(group.ip)) {
    return errorf(EINVAL, "{} is no multicast address of the id's family", text_of(group));
  }
  CmEvent event{CmEventType::kMulticastJoin};
  event.parameters.qpn = 0xffffff;
  event.parameters.qkey = kUdpQkey;
  AddressVector path = path_;
  path.local = local_.ip;
  path.remote = group.ip;
  path.hop_limit = 1;
  event.path = path;
  return event;
}

Result<void> CmId::set_family_only(bool on) {
  if (Result<void> fit = check(state_ == State::kIdle || state_ == State::kBound); !fit) return fit;
  family_only_ = on;
  return {};
}

Result<void> CmId::set_ack_timeout(uint8_t timeout) {
  if (timeout > 31) return Error{EINVAL, "a time-out has 5 bits"};
  ack_timeout_ = timeout;
  return {};
}

void CmId::take(CmConnection& connection, const CmAddress& local, const CmAddress& remote) {
  connection_ = &connection;
  connection.set_user(this);
  set_ends(connection.port(), local, remote);
  state_ = State::kConnect;
}

void CmId::take(Sidr& question, const CmAddress& local, const CmAddress& remote) {
  question_ = &question;
  set_ends(question.port(), local, remote);
  state_ = State::kConnect;
}

void CmId::device_left() {
  if (state_ == State::kGone) return;
  if (state_ == State::kListen) host_.stop_listening(*this);
  host_.scheduler().cancel(query_over_);
  release();
  state_ = State::kGone;
  raise({CmEventType::kDeviceRemoval});
}

void CmId::replied(const cm::Rep& rep) {
  CmEvent event{CmEventType::kConnectResponse, 0, parameters_of(rep)};
  event.parameters.private_data = copy(rep.private_data);
  raise(event);
}

void CmId::established(std::span<const uint8_t>) {
  raise({CmEventType::kEstablished});
}

void CmId::rejected(const cm::Rej& rej) {
  CmEvent event{CmEventType::kRejected, rej.reason};
  event.parameters.private_data = copy(rej.private_data);
  raise(event);
}

void CmId::unreachable() {
  raise_failure(CmEventType::kUnreachable, -ETIMEDOUT);
}

// Reports once, also when both ends disconnect.
void CmId::disconnected(std::span<const uint8_t>) {
  if (state_ != State::kConnect) return;
  state_ = State::kDisconnect;
  raise({CmEventType::kDisconnected});
}

void CmId::timewait_over() {
  raise({CmEventType::kTimewaitExit});
}

void CmId::answered(const cm::SidrRep& rep) {
  bool valid = rep.status == cm::kSidrValid;
  CmEvent event{valid ? CmEventType::kEstablished : CmEventType::kUnreachable};
  event.parameters.private_data = copy(rep.private_data);
  if (valid) {
    qkey_ = rep.qkey;
    event.parameters.qpn = rep.qpn;
    event.parameters.qkey = rep.qkey;
    event.path = path_;
  } else {
    event.status = rep.status;
  }
  raise(event);
}

void CmId::unanswered() {
  raise_failure(CmEventType::kUnreachable, -ETIMEDOUT);
}

}  // namespace rocefs
