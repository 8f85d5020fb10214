#include "rdma/qp.h"

#include <algorithm>
#include <cerrno>

#include "rdma/device.h"
#include "rdma/port.h"
#include "rdma/psn.h"

namespace rocefs {
namespace {

constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint16_t kDontFragment = 0x4000;
constexpr uint8_t kUdpProtocol = 17;
constexpr uint32_t kMaxWindow = 1u << 22;  // half of half the PSN space: no PSN is ambiguous

bool valid_mtu(uint32_t mtu) {
  return mtu >= 256 && mtu <= kMaxMtu && (mtu & (mtu - 1)) == 0;
}

std::array<uint8_t, 4> ipv4_of(const Ip& ip) {
  return {ip[12], ip[13], ip[14], ip[15]};
}

// A flow's UDP source port, from its two queue pairs (RoCEv2: 0xC000 to 0xFFFF carries entropy).
uint16_t source_port(uint32_t local_qpn, uint32_t remote_qpn) {
  uint64_t mixed = (uint64_t{local_qpn} << 24 | remote_qpn) * 0x9e3779b97f4a7c15;
  return static_cast<uint16_t>(0xc000 | (mixed >> 50));
}

}  // namespace

Qp::Qp(Device& device, Port& port, uint32_t number, const QpInit& init)
    : device_(device),
      port_(port),
      number_(number),
      init_(init),
      requester_(*this, init.send_depth),
      responder_(*this, init.receive_depth) {}

Qp::~Qp() {
  port_.forget(*this);
}

Scheduler& Qp::scheduler() {
  return device_.fabric().scheduler();
}

Result<void> Qp::modify(QpState to, const QpAttributes& attributes) {
  if (to == QpState::kError) {
    enter_error();
    return {};
  }
  bool next = static_cast<int>(to) == static_cast<int>(state_) + 1;
  if (!next) return errorf(EINVAL, "no way from {} to {}", name(state_), name(to));
  if (to == QpState::kInit) {
    if (!valid_mtu(attributes.path_mtu) || attributes.path_mtu > port_.mtu()) {
      return errorf(EINVAL, "path MTU {} on a port with MTU {}", attributes.path_mtu, port_.mtu());
    }
    if (attributes.timeout > 31 || attributes.retry_count > 7 || attributes.rnr_retry > 7 ||
        attributes.min_rnr_timer > 31 || attributes.window == 0 || attributes.window > kMaxWindow ||
        attributes.send_psn > kPsnMask || attributes.receive_psn > kPsnMask ||
        attributes.remote_qpn > kPsnMask) {
      return Error{EINVAL, "an attribute of the queue pair is out of range"};
    }
    attributes_ = attributes;
    fill_template();
  }
  state_ = to;
  if (to == QpState::kRtr) responder_.start(attributes_.receive_psn);
  if (to == QpState::kRts) {
    requester_.start(attributes_.send_psn);
    make_requester_ready();
  }
  return {};
}

void Qp::fill_template() {
  const AddressVector& path = attributes_.path;
  wire::Headers& headers = header_template_;
  headers.is_ipv6 = !is_mapped_ipv4(path.remote);
  if (headers.is_ipv6) {
    headers.v6.traffic_class = path.traffic_class;
    headers.v6.next_header = kUdpProtocol;
    headers.v6.hop_limit = path.hop_limit;
    headers.v6.src = path.local;
    headers.v6.dst = path.remote;
  } else {
    headers.v4.tos = path.traffic_class;
    headers.v4.id = 0;  // inside the ICRC: what an unconnected UDP socket with DF would send
    headers.v4.flags_fragment = kDontFragment;
    headers.v4.ttl = path.hop_limit;
    headers.v4.protocol = kUdpProtocol;
    headers.v4.src = ipv4_of(path.local);
    headers.v4.dst = ipv4_of(path.remote);
  }
  headers.udp.src_port = source_port(number_, attributes_.remote_qpn);
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.pkey = kDefaultPkey;
  headers.bth.mig_req = true;
  headers.bth.dest_qpn = attributes_.remote_qpn;
}

void Qp::make_requester_ready() {
  if (state_ == QpState::kRts) port_.add_request(*this);
}

void Qp::make_responder_ready() {
  port_.add_response(*this);
}

bool Qp::memory_pending() const {
  return responder_.memory_pending() || requester_.memory_pending();
}

void Qp::memory_settled() {
  if (!memory_pending()) device_.reap_later();
}

void Qp::enter_error() {
  if (state_ == QpState::kError) return;
  state_ = QpState::kError;
  requester_.flush();
  responder_.flush();
}

}  // namespace rocefs
