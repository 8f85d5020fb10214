#include "rdma/nic/gsi.h"

#include <algorithm>
#include <cassert>

#include "rdma/packet/datagram.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

// One source port for all: one per flow would cost an uplink a socket each.
constexpr uint16_t kSourcePort = wire::kFirstSourcePort | 1;
constexpr size_t kMaxMadOctets = 256;

}  // namespace

void Gsi::send(const AddressVector& path, std::span<const uint8_t> mad) {
  assert(mad.size() <= kMaxMadOctets);
  if (waiting_ == kMaxWaiting) return port_.counters().port_xmit_discards.add();
  ++waiting_;
  wire::Headers headers = headers_on(path, port_.class_override().apply_to(path));
  headers.udp.src_port = kSourcePort;
  headers.bth.opcode = wire::Opcode::kUdSendOnly;
  headers.bth.pkey = 0xffff;
  headers.bth.dest_qpn = kGsiQpn;
  headers.bth.psn = next_psn_;
  next_psn_ = (next_psn_ + 1) & kPsnMask;
  headers.deth.qkey = kGsiQkey;
  headers.deth.src_qpn = kGsiQpn;
  wire::finish_lengths(headers, mad.size());
  PacketPool& pool = port_.host().pool();
  PacketPtr packet = pool.acquire();
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  packet->payload.kind = Payload::Kind::kFrame;
  packet->payload.length = static_cast<uint16_t>(mad.size());
  std::copy(mad.begin(), mad.end(), pool.attach_frame(*packet)->bytes.begin());
  queue_.push(std::move(packet));
  port_.kick();
}

void Gsi::receive(const Packet& packet, const wire::Transport& headers) {
  constexpr uint16_t kMembership = 0x8000;
  bool datagram = headers.opcode() == wire::Opcode::kUdSendOnly;
  if (!datagram || headers.deth().qkey != kGsiQkey) return port_.counters().rx_unknown_qp.add();
  if ((headers.pkey() | kMembership) != 0xffff) return port_.counters().rx_wrong_pkey.add();
  const uint8_t* bytes = payload_bytes(packet);
  std::span<const uint8_t> mad(bytes, bytes ? packet.payload.length : 0);
  AddressVector path{destination_of(packet).ip, source_of(packet).ip};
  bool ours = port_.gids().has(path.local);
  if (!ours || !agent_ || !agent_->receive_mad(port_, path, mad)) {
    port_.counters().rx_mads_discarded.add();
  }
}

}  // namespace rocefs
