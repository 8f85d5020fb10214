// IP addresses in the form of a GID, and their classes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rocefs {

using Ip = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

// For tables of addresses of a fabric: not against chosen addresses.
struct IpHash {
  size_t operator()(const Ip& ip) const {
    uint64_t high = 0, low = 0;
    std::memcpy(&high, ip.data(), sizeof high);
    std::memcpy(&low, ip.data() + sizeof high, sizeof low);
    constexpr uint64_t kMixer = 0x9e3779b97f4a7c15;
    uint64_t mixed = (high ^ (low * kMixer)) * kMixer;
    return mixed ^ mixed >> 32;
  }
};

inline Ip mapped_ipv4(const std::array<uint8_t, 4>& v4) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, v4[0], v4[1], v4[2], v4[3]};
}
inline bool is_mapped_ipv4(const Ip& ip) {
  for (size_t i = 0; i < 10; ++i) {
    if (ip[i] != 0) return false;
  }
  return ip[10] == 0xff && ip[11] == 0xff;
}

// Whether a queue pair may be connected to the address. Directed broadcast addresses of IPv4
// networks pass: their prefix lengths are not known here.
inline bool is_unicast(const Ip& ip) {
  if (is_mapped_ipv4(ip)) return ip[12] != 0 && ip[12] < 224;
  constexpr Ip kNone{}, kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return ip[0] != 0xff && ip != kNone && ip != kLoopback;
}

// IPv6 ff00::/8, IPv4 224.0.0.0/4.
inline bool is_multicast(const Ip& ip) {
  return is_mapped_ipv4(ip) ? ip[12] >> 4 == 14 : ip[0] == 0xff;
}

// 127.0.0.0/8: reaches only addresses of the same class.
inline bool is_loopback(const Ip& ip) {
  return is_mapped_ipv4(ip) && ip[12] == 127;
}

}  // namespace rocefs
