#include "rdma/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/fd.h"
#include "rdma/packet.h"
#include "rdma/udp_sockets.h"

namespace rocefs {
namespace {

bool is_loopback(const Ip& ip) {
  return is_mapped_ipv4(ip) && ip[12] == 127;
}

uint32_t mtu_of(const char* name) {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  bool told = fd && ::ioctl(fd.get(), SIOCGIFMTU, &request) == 0;
  return told ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

}  // namespace

std::optional<Interface> interface_of(const Ip& address) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return std::nullopt;
  std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  for (const ifaddrs* at = first; at; at = at->ifa_next) {
    UdpAddress own;
    if (!at->ifa_addr || !from_sockaddr(*at->ifa_addr, own)) continue;
    if (own.ip == address || (is_loopback(own.ip) && is_loopback(address))) {
      return Interface{at->ifa_name, mtu_of(at->ifa_name)};
    }
  }
  return std::nullopt;
}

uint32_t roce_mtu(uint32_t ip_mtu) {
  constexpr uint32_t kOverhead = wire::kMaxHeaderLen - wire::kMaxExtensionLen + 16 + wire::kIcrcLen;
  for (uint32_t mtu = kMaxMtu; mtu >= 256; mtu /= 2) {
    if (mtu + kOverhead <= ip_mtu) return mtu;
  }
  return 0;
}

}  // namespace rocefs
