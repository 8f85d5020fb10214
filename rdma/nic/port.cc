#include "rdma/nic/port.h"

#include <algorithm>
#include <cstring>

#include "core/base/prefetch.h"
#include "rdma/packet/datagram.h"
#include "rdma/packet/ethernet_frame.h"
#include "rdma/packet/traffic_class.h"
#include "rdma/transport/qp.h"
#include "rdma/wire/icrc.h"

namespace rocefs {
namespace {

wire::Service service_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return wire::Service::kRc;
    case QpType::kUc:
      return wire::Service::kUc;
    case QpType::kUd:
      return wire::Service::kUd;
    case QpType::kXrcSend:
    case QpType::kXrcReceive:
      break;
  }
  return wire::Service::kXrc;
}

// Whether packets of that kind go to such a queue pair. An end of XRC takes requests or responses.
bool takes(QpType type, const wire::OpcodeInfo& info) {
  if (info.service != service_of(type)) return false;
  return !is_xrc(type) || info.response == (type == QpType::kXrcSend);
}

}  // namespace

Port::Port(PortHost& host, const PortSpec& spec, uint8_t number)
    : PortBase(host, spec, number),
      uplink_{spec.mtu},
      of_host_{spec.mtu},
      mtu_(spec.mtu),
      shown_{gids_.entries(), 0},
      cnps_(*this),
      gsi_(*this),
      loop_(event_of<&Port::take_looped>(this)) {}

std::string Port::name() const {
  return PortName{host_.name(), number_}.text();
}

void Port::reset() {
  waiting_since_ = kNever;
  loops_until_ = 0;
  cnps_.clear();
  gsi_.clear();
  looped_.clear();
}

void Port::attach(Link& egress, Link& ingress, bool to_switch) {
  egress_ = &egress;
  ingress_ = &ingress;
  loops_own_ = !to_switch;
  on_link_state();
  for (Link* link : {egress_, ingress_}) link->add_state_listener([this] { on_link_state(); });
}

// Link state of a port: up when both directions of its cable are.
void Port::on_link_state() {
  bool up = egress_->up() && ingress_->up();
  if (std::exchange(link_up_, up) == up) return;
  if (!up) counters_.link_downed.add();
  if (interface_) interface_->carrier_changed(interface_up());
  host_.link_changed(number_);
}

void Port::plug(NetInterface* interface) {
  interface_ = interface;
  if (!interface_) return;
  interface_->carrier_changed(interface_up());
  if (interface_->waiting()) kick();
}

void Port::combine_sides() {
  mtu_.store(std::min(uplink_.mtu, of_host_.mtu), std::memory_order_relaxed);
  bool carrier = uplink_.carrier && of_host_.carrier;
  if (carrier_.exchange(carrier, std::memory_order_relaxed) == carrier) return;
  for (Link* link : {egress_, ingress_}) link->set_carrier(carrier);
}

Packet* Port::pull(TimeNs now) {
  if (now < loops_until_) return nullptr;  // take_looped() kicks the link
  PacketPtr packet = next_packet(now);
  note_wait(packet != nullptr, now);
  if (!packet) return nullptr;
  if (packet->ethernet) {
    if (egress_->up()) host_.fabric().capture(*this, *packet, now);
    return packet.release();
  }
  if (!egress_->up()) {
    counters_.port_xmit_discards.add();  // the link drops the packet
    return packet.release();
  }
  if (loops_own_ && gids_.has(destination_of(*packet).ip)) {
    loop(std::move(packet), now);
    return nullptr;
  }
  counters_.port_xmit_packets.add();
  if (is_multicast(*packet)) {
    counters_.multicast_xmit_packets.add();
    looped_.push(copy_of(*packet));  // the network delivers to other devices only
    if (!loop_.scheduled()) host_.scheduler().after(loop_, 0);
  } else {
    counters_.unicast_xmit_packets.add();
  }
  counters_.port_xmit_data.add(packet->wire_length());
  host_.fabric().capture(*this, *packet, now);
  return packet.release();
}

PacketPtr Port::next_packet(TimeNs now) {
  auto open = static_cast<uint8_t>(~egress_->paused());
  bool cnp_may_go = cnps_.ready() && (open >> ecn_.np().cnp_priority & 1);
  if (cnp_may_go) return cnps_.pull(now);
  if (gsi_.ready() && (open >> priority_of(*gsi_.front()) & 1)) return gsi_.pull();
  while (auto among = static_cast<uint8_t>(acknowledges_.ready() & open)) {
    size_t priority = acknowledges_.turn().next(among);
    Qp* qp = acknowledges_.take(priority);
    qp->links().in_acknowledges = false;
    if (PacketPtr packet = qp->responder().emit_acknowledge()) {
      acknowledges_.turn().sent(priority, packet->wire_length() + kEthernetOverhead);
      return packet;
    }
  }
  if (waiting_frames() && frames_next_) {
    if (PacketPtr frame = next_frame(open)) return frame;
  }
  while (auto among = static_cast<uint8_t>(data_.ready() & open)) {
    size_t priority = data_.turn().next(among);
    if (PacketPtr packet = next_data(priority, now)) return packet;
  }
  return waiting_frames() ? next_frame(open) : nullptr;
}

// Null if all that waits is paused.
PacketPtr Port::next_frame(uint8_t open) {
  auto among = static_cast<uint8_t>(interface_->waiting() & open);
  if (among == 0) return nullptr;
  frames_next_ = false;
  size_t priority = frame_turn_.next(among);
  PacketPtr frame = interface_->pull(priority);
  if (frame) frame_turn_.sent(priority, frame->wire_length() + kEthernetOverhead);
  return frame;
}

// Takes a packet from the first queue pair of a priority; null if it has none after all.
PacketPtr Port::next_data(size_t priority, TimeNs now) {
  Qp* qp = data_.take(priority);
  qp->links().in_data = false;
  PacketPtr packet = qp->emit_data(now);
  uint64_t length = 0;
  if (packet) {
    length = packet->wire_length();
    data_.turn().sent(priority, length + kEthernetOverhead);
  }
  bool has_more = packet && qp->has_data() && !qp->links().in_data;
  bool goes_on = has_more && qp->priority() == priority && !qp->data_held();
  constexpr uint64_t kTurnsPerSecond = 500'000;
  uint64_t& sent = data_.sent(priority);
  if (goes_on) sent += length;
  if (!goes_on || sent >= line_bps() / 8 / kTurnsPerSecond) {
    sent = 0;
    frames_next_ = true;
    if (has_more) qp->make_data_ready();
    return packet;
  }
  data_.put_first(*qp, priority);
  qp->links().in_data = true;
  return packet;
}

// Counts time from the moment when all that is ready is paused, until something is sent or nothing
// is left to send.
void Port::note_wait(bool sends, TimeNs now) {
  bool waits = !sends && ready();
  if (waits && waiting_since_ == kNever) waiting_since_ = now;
  if (waits || waiting_since_ == kNever) return;
  counters_.port_xmit_wait.add(static_cast<uint64_t>(now - waiting_since_));
  waiting_since_ = kNever;
}

uint64_t Port::xmit_wait_ns(TimeNs now) const {
  const bool waits = waiting_since_ != kNever;
  return counters_.port_xmit_wait.get() + (waits ? static_cast<uint64_t>(now - waiting_since_) : 0);
}

void Port::add_data(Qp& qp) {
  if (qp.links().in_data) return;
  qp.links().in_data = true;
  data_.append(qp, qp.priority());
  kick();
}

void Port::add_acknowledge(Qp& qp) {
  if (qp.links().in_acknowledges) return;
  qp.links().in_acknowledges = true;
  acknowledges_.append(qp, qp.priority());
  kick();
}

void Port::forget(Qp& qp) {
  if (qp.links().in_data) data_.remove(qp, qp.priority());
  if (qp.links().in_acknowledges) acknowledges_.remove(qp, qp.priority());
  qp.links().in_data = qp.links().in_acknowledges = false;
  if (!ready()) note_wait(false, host_.scheduler().now());
}

void Port::prefetch(int step) const {
  if (step == 1) {
    for (const void* part :
         {static_cast<const void*>(&data_), static_cast<const void*>(&cnps_),
          static_cast<const void*>(&acknowledges_), static_cast<const void*>(&gsi_),
          static_cast<const void*>(&interface_)}) {
      __builtin_prefetch(part, 1);
    }
    prefetch_two_lines(&counters_);
    return;
  }
  if (const Qp* qp = acknowledges_.likely_next()) {
    if (step == 2) qp->prefetch_responder();
  } else if (const Qp* sender = data_.likely_next()) {
    sender->prefetch_requester(step);
  }
}

void Port::prefetch(const Packet& packet, int step) const {
  if (packet.ethernet) return;
  const wire::Transport headers = packet.transport();
  const Payload& payload = packet.payload;
  if (step == 1) {
    host_.qps().prefetch(headers.dest_qpn());
    prefetch_two_lines(&counters_);
    prefetch_end(packet);
    if (payload.kind == Payload::Kind::kLocal) __builtin_prefetch(payload.table);
  } else if (step == 2) {
    if (payload.kind == Payload::Kind::kLocal) payload.table->prefetch(payload.slot.index);
    if (const Qp* qp = host_.qps().find(headers.dest_qpn())) {
      headers.info().response ? qp->prefetch_completer() : qp->prefetch_responder();
    }
  }
}

void Port::receive(Packet* arriving, TimeNs now) {
  PacketPtr packet(arriving);
  prefetch_end(*packet);
  if (packet->ethernet) return receive_frame(std::move(packet), now);
  if (!host_.present()) return host_.fabric().counters().no_device.add_shared();
  counters_.port_rcv_packets.add();
  const bool multicast = is_multicast(*packet);
  (multicast ? counters_.multicast_rcv_packets : counters_.unicast_rcv_packets).add();
  counters_.port_rcv_data.add(packet->wire_length());
  wire::Transport headers = packet->transport();
  bool whole = check(*packet, headers);
  if (!whole) return;
  if (ecn_of(*packet) == Ecn::kCongested) counters_.np_ecn_marked_roce_packets.add();
  take(std::move(packet), headers, multicast, now);
}

// Gives a whole packet to whom it is for.
inline void Port::take(PacketPtr&& packet, const wire::Transport& headers, bool multicast,
                       TimeNs now) {
  if (headers.opcode() == wire::Opcode::kCnp) return take_cnp(*packet, headers, now);
  if (multicast) return deliver_to_group(*packet, now);
  if (headers.dest_qpn() == kGsiQpn) return gsi_.receive(*packet, headers);
  if (Qp* qp = find_qp(headers.dest_qpn(), *packet, headers)) {
    deliver(*qp, std::move(packet), headers, now);
  }
}

namespace {

// Whether a frame is a UDP datagram to RoCE's port.
bool is_roce(const Packet& frame) {
  const uint8_t* header = frame.header.data();
  bool ipv6 = ethertype_of(frame) == kTypeIpv6;
  constexpr uint8_t kUdp = 17;
  size_t length = ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
  if (frame.header_len < length + wire::kUdpLen || header[ipv6 ? 6 : 9] != kUdp) return false;
  return header[length + 2] == wire::kRocePort >> 8 &&
         header[length + 3] == (wire::kRocePort & 255);
}

}  // namespace

// Gives a frame to the host, but for RoCE packets that somebody's kernel has sent: those are for
// the NIC where they are for one of its addresses.
void Port::receive_frame(PacketPtr&& frame, TimeNs now) {
  if (is_roce(*frame)) {
    const Ip to = destination_of(*frame).ip;
    if (gids().has(to) && frame->intact) {
      std::array<uint8_t, kMaxEthernetData> bytes;
      copy_data(*frame, bytes.data());
      return receive_bytes(std::span(bytes).first(ethernet_length(*frame)), now);
    }
  }
  if (interface_ && host_.present()) interface_->receive(std::move(frame));
}

inline void Port::deliver(Qp& qp, PacketPtr&& packet, const wire::Transport& headers, TimeNs now) {
  bool marked = ecn_of(*packet) == Ecn::kCongested && !is_multicast(*packet);
  if (marked) take_mark(qp, *packet, headers, now);
  if (headers.info().response) {
    qp.requester().receive_response(std::move(packet), headers, now);
  } else {
    qp.responder().receive(std::move(packet), headers);
  }
}

// Copies the packet for each queue pair of the group.
void Port::deliver_to_group(const Packet& packet, TimeNs now) {
  wire::Transport headers = packet.transport();
  bool named = headers.dest_qpn() == kMulticastQpn;
  for (uint32_t number : host_.groups().members(destination_of(packet).ip)) {
    Qp* qp = named ? find_qp(number, packet, headers) : nullptr;
    if (!qp) continue;
    PacketPtr copy = copy_of(packet);
    const wire::Transport its_headers = copy->transport();
    deliver(*qp, std::move(copy), its_headers, now);
  }
}

// Loops a packet to one of the port's own addresses, in the time that the link would need for it:
// the port sends nothing else meanwhile, so that no flow takes more than the link's rate.
void Port::loop(PacketPtr&& packet, TimeNs now) {
  host_.fabric().capture(*this, *packet, now);
  loops_until_ = now + 1 + static_cast<TimeNs>(egress_->serialization_ns(packet->wire_length()));
  looped_.push(std::move(packet));
  host_.scheduler().at(loop_, loops_until_);
}

// Delivers looped packets, which were not on the wire and are not counted as received.
void Port::take_looped(TimeNs now) {
  while (PacketPtr packet = looped_.pop()) {
    wire::Transport headers = packet->transport();
    bool whole = host_.present() && check(*packet, headers);
    if (whole) take(std::move(packet), headers, is_multicast(*packet), now);
  }
  if (ready()) kick();
}

void Port::receive_bytes(std::span<const uint8_t> bytes, TimeNs now) {
  uint32_t icrc;
  if (PacketPtr packet = packet_of_bytes(host_.pool(), bytes, icrc)) {
    return receive(packet.release(), now);
  }
  counters_.port_rcv_errors.add();
}

// Validates a packet. A payload by reference has no ICRC to check, but its memory region may be
// gone.
inline bool Port::check(const Packet& packet, const wire::Transport& headers) {
  if (!headers.well_formed()) {
    counters_.port_rcv_errors.add();
    return false;
  }
  if (packet.payload.kind == Payload::Kind::kLocal && !payload_bytes(packet)) {
    host_.fabric().counters().stale_payloads.add_shared();
    return false;
  }
  if (packet.sealed && !packet.intact) {
    size_t length = packet.payload.length;
    size_t pad = packet.sealed_length() - length - wire::kIcrcLen;
    std::span<const uint8_t> bytes(packet.frame->bytes);
    bool ipv6 = packet.header[0] >> 4 == 6;
    uint32_t icrc =
        wire::icrc(packet.header_bytes(), ipv6, bytes.first(length), bytes.subspan(length, pad));
    if (icrc != wire::load_icrc(bytes.subspan(length + pad))) {
      counters_.rx_icrc_encapsulated.add();
      return false;
    }
  }
  return true;
}

// Answers a marked data packet with a CNP where the priority wants it. Acknowledgements and other
// small responses are no data.
void Port::take_mark(Qp& qp, const Packet& packet, const wire::Transport& headers, TimeNs now) {
  const wire::OpcodeInfo& info = headers.info();
  if (!info.request && !info.is_read_response) return;
  bool wanted = ecn_.np().priorities >> priority_of(packet) & 1;
  if (!wanted || !cnps_.may_notify(qp, now)) return;
  bool datagram = qp.type() == QpType::kUd;
  CnpAddress address =
      qp.cnp_address(datagram ? headers.deth().src_qpn : qp.attributes().remote_qpn);
  if (datagram) {
    address.from = destination_of(packet).ip;
    address.to = source_of(packet).ip;
  }
  cnps_.notify(qp, CnpCause::kEcn, address, now);
}

// Reduces the rate of the queue pair that the CNP names.
void Port::take_cnp(const Packet& packet, const wire::Transport& headers, TimeNs now) {
  Qp* qp = host_.qps().find(headers.dest_qpn());
  bool mine = qp && &qp->port() == this && qp->receives_packets() && qp->matches_connection(packet);
  if (mine && qp->congestion().receive_cnp(now)) return counters_.rp_cnp_handled.add();
  counters_.rp_cnp_ignored.add();
}

inline Qp* Port::find_qp(uint32_t number, const Packet& packet, const wire::Transport& headers) {
  Qp* qp = host_.qps().find(number);
  if (qp && &qp->port() != this) qp = nullptr;
  bool receives = qp && qp->receives_packets();
  constexpr uint16_t kMembership = 0x8000;
  bool pkey_ok = (headers.pkey() | kMembership) == 0xffff;
  bool mine = receives && takes(qp->type(), headers.info()) && qp->matches_connection(packet);
  if (mine && pkey_ok) return qp;
  (mine ? counters_.rx_wrong_pkey : counters_.rx_unknown_qp).add();
  return nullptr;
}

}  // namespace rocefs
