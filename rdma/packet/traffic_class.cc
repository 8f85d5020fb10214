#include "rdma/packet/traffic_class.h"

namespace rocefs {

void mark_congested(Packet& packet) {
  uint8_t* header = packet.header.data();
  if (header[0] >> 4 == 6) {
    header[1] |= 0x30;
    return;
  }
  auto word = [&](size_t at) { return uint32_t{header[at]} << 8 | header[at + 1]; };
  uint32_t before = word(0);
  header[1] |= 3;
  // RFC 1624: HC' = ~(~HC + ~m + m').
  uint32_t sum = (~word(10) & 0xffff) + (~before & 0xffff) + word(0);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  header[10] = static_cast<uint8_t>(~sum >> 8);
  header[11] = static_cast<uint8_t>(~sum);
}

}  // namespace rocefs
