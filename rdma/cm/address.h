// Addresses of rdma_cm ids: IPv4, IPv6 or IB, with the port space that their ports belong to.
#pragma once

#include <cstdint>
#include <string>

#include "rdma/wire/ip.h"

namespace rocefs {

// IBTA annex A11, and rdma_port_space of librdmacm.
enum class PortSpace : uint16_t { kIpoib = 0x0002, kIb = 0x013f, kTcp = 0x0106, kUdp = 0x0111 };

struct CmAddress {
  enum class Family : uint8_t { kNone, kIpv4, kIpv6, kIb };
  Family family = Family::kNone;
  Ip ip{};                  // kIb: the GID
  uint16_t port = 0;        // kIb: the last octets of the service
  uint64_t service_id = 0;  // kIb

  bool any() const { return ip == Ip{} || ip == mapped_ipv4({0, 0, 0, 0}); }
  bool loopback() const {
    constexpr Ip kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return is_loopback(ip) || ip == kLoopback;
  }
};

// ADDRESS:PORT, with brackets around IPv6; "-" without an address.
std::string text_of(const CmAddress& address);

}  // namespace rocefs
