#include "rdma/cc/cnp.h"

#include "rdma/packet/datagram.h"

namespace rocefs {

PacketPtr make_cnp(PacketPool& pool, const CnpAddress& address) {
  wire::Headers headers = headers_on({address.from, address.to}, address.traffic_class);
  headers.udp.src_port = address.source_port;
  headers.bth.opcode = wire::Opcode::kCnp;
  headers.bth.becn = true;
  headers.bth.pkey = 0xffff;
  headers.bth.dest_qpn = address.dest_qpn;
  wire::finish_lengths(headers, 0);
  PacketPtr packet = pool.acquire();
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  return packet;
}

}  // namespace rocefs
