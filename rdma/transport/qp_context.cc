#include "rdma/transport/qp_context.h"

#include <algorithm>

#include "rdma/packet/datagram.h"
#include "rdma/packet/traffic_class.h"

namespace rocefs {
namespace {

constexpr uint16_t kDefaultPkey = 0xffff;

// A flow's UDP source port (RoCEv2: 0xC000 to 0xFFFF carries entropy): the flow label's 20 bits
// folded to 14, as Linux does in rdma_flow_label_to_udp_sport(), or without one from the two queue
// pairs.
uint16_t source_port(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn) {
  if (uint32_t label = flow_label & wire::kFlowLabelMask) {
    return static_cast<uint16_t>(wire::kFirstSourcePort | ((label ^ label >> 14) & 0x3fff));
  }
  uint64_t mixed = (uint64_t{local_qpn} << 24 | remote_qpn) * 0x9e3779b97f4a7c15;
  return static_cast<uint16_t>(wire::kFirstSourcePort | (mixed >> 50));
}

}  // namespace

QpContext::QpContext(Qp& qp, QpHost& host, uint32_t number, uint32_t serial, const QpInit& init)
    : qp_(qp),
      host_(host),
      port_(host.find_port(1)),
      number_(number),
      serial_(serial),
      init_(init),
      receives_(init.shared_receives ? 0 : init.receive_depth, init.pd) {}

bool QpContext::ensure_queued(const AddressVector& path) {
  size_t priority = priority_of_class(port_->class_override().apply_to(path));
  if (priority == priority_) return true;
  move_to(*port_, priority);
  return false;
}

void QpContext::move_to(QpPort& port, size_t priority) {
  port_->forget(qp_);
  port_ = &port;
  priority_ = static_cast<uint8_t>(priority);
  make_data_ready();
  make_acknowledge_ready();
}

CnpAddress QpContext::cnp_address(uint32_t remote_qpn) const {
  const AddressVector& path = attributes_.path;
  uint16_t port = source_port(path.flow_label, number_, remote_qpn);
  return {path.local, path.remote, remote_qpn, port, 0};
}

void QpContext::note_gap(uint64_t ahead) {
  const Cfr& cfr = host_.cfr();
  if (!cfr.enabled() || ahead < cfr.ooo_threshold()) return;
  port_->notify(qp_, CnpCause::kOutOfOrder, cnp_address(attributes_.remote_qpn), scheduler().now());
}

wire::Headers QpContext::headers_to(const AddressVector& path, uint32_t remote_qpn) const {
  wire::Headers headers = headers_on(path, port_->class_override().apply_to(path));
  headers.udp.src_port = source_port(path.flow_label, number_, remote_qpn);
  headers.bth.pkey = kDefaultPkey;
  headers.bth.mig_req = true;
  headers.bth.dest_qpn = remote_qpn;
  return headers;
}

uint16_t QpContext::next_port_offset(TimeNs now) {
  const SpraySettings& settings = host_.spraying();
  if (!settings.on() || type() == QpType::kUc) return 0;
  return spray_.next_offset(settings, now);
}

bool QpContext::sr_capable() const {
  return reliable() && host_.selective().enabled();
}

// The reorder window is a number of packets or, where no more come, twice the time that they take
// on the port's link: at most a quarter of the time-out, so that the far end need not time out. A
// packet that slower links on the way delay by more is asked for too early, and comes twice.
MissingPsns::ReorderLimits QpContext::reorder_limits() {
  constexpr uint64_t kHeaders = wire::kIpv4Len + wire::kUdpLen + wire::kBthLen + wire::kIcrcLen;
  constexpr uint8_t kUsualTimeout = 14, kMaxTimeout = 18;
  uint8_t timeout = std::min(attributes_.timeout, kMaxTimeout);
  if (timeout == 0) timeout = kUsualTimeout;
  TimeNs quarter = (TimeNs{4096} << timeout) / 4;
  uint32_t window = host_.selective().reorder_window();
  double packet_ns = port_->receive_ns(attributes_.path_mtu + kHeaders);
  auto overtaken = static_cast<TimeNs>(2 * window * packet_ns);
  return {window, std::min(overtaken, quarter), quarter};
}

void QpContext::raise(QpEvent event) {
  if (event == QpEvent::kDrained && !attributes_.notify_drained) return;
  auto bit = static_cast<uint8_t>(1u << static_cast<int>(event));
  if (!init_.observer || (raised_ & bit)) return;
  raised_ |= bit;
  init_.observer->qp_event(event);
}

}  // namespace rocefs
