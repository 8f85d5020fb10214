// Well-formed wrapping for octets that begin with a BTH: IP, UDP, padding and ICRC, so that a port
// accepts them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "rdma/packet/datagram.h"
#include "rdma/wire/icrc.h"
#include "rdma/wire/ip_text.h"

namespace rocefs::fuzz {

inline void finish_ip(std::vector<uint8_t>& packet, bool v6, const Ip& source,
                      const Ip& destination) {
  size_t ip_len = v6 ? wire::kIpv6Len : wire::kIpv4Len;
  size_t total = packet.size() + wire::kIcrcLen;
  auto put16 = [&](size_t at, size_t value) {
    packet[at] = static_cast<uint8_t>(value >> 8);
    packet[at + 1] = static_cast<uint8_t>(value);
  };
  put16(ip_len, 0xc000);
  put16(ip_len + 2, wire::kRocePort);
  put16(ip_len + 4, total - ip_len);
  if (v6) {
    packet[0] = 0x60;
    put16(4, total - ip_len);
    packet[6] = 17;
    std::copy(source.begin(), source.end(), packet.begin() + 8);
    std::copy(destination.begin(), destination.end(), packet.begin() + 24);
    return;
  }
  packet[0] = 0x45;
  put16(2, total);
  packet[8] = 64;
  packet[9] = 17;
  std::copy(source.begin() + 12, source.end(), packet.begin() + 12);
  std::copy(destination.begin() + 12, destination.end(), packet.begin() + 16);
  uint32_t sum = 0;
  for (size_t i = 0; i < 20; i += 2) sum += packet[i] << 8 | packet[i + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  put16(10, ~sum & 0xffff);
}

// `from_bth` holds at least a BTH.
inline std::vector<uint8_t> wrapped(std::span<const uint8_t> from_bth, const Ip& source,
                                    const Ip& destination) {
  bool v6 = !is_mapped_ipv4(destination);
  std::vector<uint8_t> packet((v6 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen);
  size_t bth = packet.size();
  packet.insert(packet.end(), from_bth.begin(), from_bth.end());
  while (packet.size() % 4 != bth % 4) packet.push_back(0);
  finish_ip(packet, v6, source, destination);
  size_t headers = std::min(packet.size(), wire::kMaxHeaderLen);
  std::span<const uint8_t> all(packet);
  uint32_t icrc = wire::icrc(all.first(headers), v6, all.subspan(headers), {});
  packet.resize(packet.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(packet).last(wire::kIcrcLen), icrc);
  return packet;
}

}  // namespace rocefs::fuzz
