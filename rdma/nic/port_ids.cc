#include "rdma/nic/port_ids.h"

namespace rocefs {

uint64_t guid_of(const PortSpec& spec) {
  const auto& mac = spec.mac;
  uint64_t guid = 0;
  for (uint8_t byte :
       {mac[0], mac[1], mac[2], uint8_t{0xff}, uint8_t{0xfe}, mac[3], mac[4], mac[5]}) {
    guid = guid << 8 | byte;
  }
  return guid;
}

std::vector<Ip> gids_of(const PortSpec& spec) {
  constexpr uint64_t kUniversalLocal = uint64_t{2} << 56;  // RFC 4291, appendix A
  uint64_t interface = guid_of(spec) ^ kUniversalLocal;
  Ip link_local{0xfe, 0x80};
  for (size_t i = 0; i < 8; ++i)
    link_local[8 + i] = static_cast<uint8_t>(interface >> (56 - 8 * i));
  std::vector<Ip> gids{link_local, mapped_ipv4(spec.ipv4)};
  if (spec.ipv6) gids.push_back(*spec.ipv6);
  return gids;
}

}  // namespace rocefs
