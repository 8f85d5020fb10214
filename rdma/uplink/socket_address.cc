#include "rdma/uplink/socket_address.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace rocefs {

uint32_t to_sockaddr(const UdpAddress& address, sockaddr_storage& out) {
  if (is_mapped_ipv4(address.ip)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&v4.sin_addr, address.ip.data() + 12, sizeof v4.sin_addr);
    std::memcpy(&out, &v4, sizeof v4);
    return sizeof v4;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  std::memcpy(&v6.sin6_addr, address.ip.data(), sizeof v6.sin6_addr);
  std::memcpy(&out, &v6, sizeof v6);
  return sizeof v6;
}

bool from_sockaddr(const sockaddr& in, UdpAddress& out) {
  if (in.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &in, sizeof v4);
    std::array<uint8_t, 4> octets;
    std::memcpy(octets.data(), &v4.sin_addr, sizeof octets);
    out = {mapped_ipv4(octets), ntohs(v4.sin_port)};
    return true;
  }
  if (in.sa_family != AF_INET6) return false;
  sockaddr_in6 v6;
  std::memcpy(&v6, &in, sizeof v6);
  std::memcpy(out.ip.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  out.port = ntohs(v6.sin6_port);
  return true;
}

}  // namespace rocefs
