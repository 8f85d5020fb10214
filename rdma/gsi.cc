#include "rdma/gsi.h"

#include <algorithm>
#include <cassert>

#include "rdma/device.h"
#include "rdma/memory.h"
#include "rdma/port.h"
#include "rdma/psn.h"

namespace rocefs {
namespace {

// One for all: a port per flow would only cost an uplink sockets.
constexpr uint16_t kSourcePort = wire::kFirstSourcePort | 1;
constexpr size_t kMostOctets = 256;

void put_addresses(const AddressVector& path, uint8_t traffic_class, wire::Headers& headers) {
  constexpr uint16_t kDontFragment = 0x4000;
  constexpr uint8_t kUdpProtocol = 17;
  headers.is_ipv6 = !is_mapped_ipv4(path.remote);
  if (headers.is_ipv6) {
    headers.v6.traffic_class = traffic_class;
    headers.v6.next_header = kUdpProtocol;
    headers.v6.hop_limit = path.hop_limit;
    headers.v6.src = path.local;
    headers.v6.dst = path.remote;
    return;
  }
  headers.v4.tos = traffic_class;
  headers.v4.flags_fragment = kDontFragment;
  headers.v4.ttl = path.hop_limit;
  headers.v4.protocol = kUdpProtocol;
  std::copy_n(path.local.begin() + 12, 4, headers.v4.src.begin());
  std::copy_n(path.remote.begin() + 12, 4, headers.v4.dst.begin());
}

AddressVector path_back(const Packet& packet) {
  const uint8_t* at = packet.header.data();
  AddressVector path;
  if (at[0] >> 4 == 6) {
    std::copy_n(at + 8, path.remote.size(), path.remote.begin());
    std::copy_n(at + 24, path.local.size(), path.local.begin());
  } else {
    path.remote = mapped_ipv4({at[12], at[13], at[14], at[15]});
    path.local = mapped_ipv4({at[16], at[17], at[18], at[19]});
  }
  return path;
}

}  // namespace

void Gsi::send(const AddressVector& path, std::span<const uint8_t> mad) {
  assert(mad.size() <= kMostOctets);
  wire::Headers headers;
  put_addresses(path, port_.class_override().apply_to(path), headers);
  headers.udp.src_port = kSourcePort;
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.opcode = wire::Opcode::kUdSendOnly;
  headers.bth.pkey = 0xffff;
  headers.bth.dest_qpn = kGsiQpn;
  headers.bth.psn = next_psn_;
  next_psn_ = (next_psn_ + 1) & kPsnMask;
  headers.deth.qkey = kGsiQkey;
  headers.deth.src_qpn = kGsiQpn;
  wire::finish_lengths(headers, mad.size());
  PacketPool& pool = port_.device().fabric().pool();
  Packet* packet = pool.acquire();
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  packet->payload.kind = Payload::Kind::kFrame;
  packet->payload.length = static_cast<uint16_t>(mad.size());
  std::copy(mad.begin(), mad.end(), pool.attach_frame(packet)->bytes.begin());
  queue_.push(packet);
  port_.kick();
}

void Gsi::receive(const Packet& packet, const wire::Transport& headers) {
  constexpr uint16_t kMembership = 0x8000;
  bool datagram = headers.opcode() == wire::Opcode::kUdSendOnly;
  if (!datagram || headers.deth().qkey != kGsiQkey) return port_.counters().rx_unknown_qp.add();
  if ((headers.pkey() | kMembership) != 0xffff) return port_.counters().rx_wrong_pkey.add();
  const uint8_t* bytes = payload_bytes(packet);
  std::span<const uint8_t> mad(bytes, bytes ? packet.payload.length : 0);
  AddressVector path = path_back(packet);
  const auto& gids = port_.gids();
  bool ours = std::find(gids.begin(), gids.end(), path.local) != gids.end();
  if (!ours || !agent_ || !agent_->receive_mad(port_, path, mad)) {
    port_.counters().rx_mads_discarded.add();
  }
}

void Gsi::clear() {
  while (Packet* packet = queue_.pop()) port_.device().fabric().pool().release(packet);
}

}  // namespace rocefs
