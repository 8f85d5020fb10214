#include "rdma/cnp.h"

#include <algorithm>

#include "rdma/wire/packet.h"

namespace rocefs {

Packet* make_cnp(PacketPool& pool, const CnpAddress& address) {
  constexpr uint16_t kDontFragment = 0x4000;
  constexpr uint8_t kUdpProtocol = 17, kHopLimit = 64;
  wire::Headers headers;
  headers.is_ipv6 = !is_mapped_ipv4(address.to);
  if (headers.is_ipv6) {
    headers.v6.traffic_class = address.traffic_class;
    headers.v6.next_header = kUdpProtocol;
    headers.v6.hop_limit = kHopLimit;
    headers.v6.src = address.from;
    headers.v6.dst = address.to;
  } else {
    headers.v4.tos = address.traffic_class;
    headers.v4.flags_fragment = kDontFragment;
    headers.v4.ttl = kHopLimit;
    headers.v4.protocol = kUdpProtocol;
    std::copy_n(address.from.begin() + 12, 4, headers.v4.src.begin());
    std::copy_n(address.to.begin() + 12, 4, headers.v4.dst.begin());
  }
  headers.udp.src_port = address.source_port;
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.opcode = wire::Opcode::kCnp;
  headers.bth.mig_req = true;
  headers.bth.becn = true;
  headers.bth.pkey = 0xffff;
  headers.bth.dest_qpn = address.dest_qpn;
  wire::finish_lengths(headers, 0);
  Packet* packet = pool.acquire();
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  return packet;
}

}  // namespace rocefs
