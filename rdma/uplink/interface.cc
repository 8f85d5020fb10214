#include "rdma/uplink/interface.h"

#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/base/fd.h"
#include "rdma/packet/packet.h"
#include "rdma/uplink/udp_sockets.h"

namespace rocefs {
namespace {

// IFF_LOWER_UP, of linux/if.h, which net/if.h excludes: the carrier without delay. IFF_RUNNING
// follows it up to a second later.
constexpr unsigned kLowerUp = 1u << 16;

int errno_of_bind(const Ip& address) {
  sockaddr_storage name{};
  socklen_t length = to_sockaddr({address, 0}, name);
  Fd fd(::socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0 ? 0 : errno;
}

uint32_t mtu_of(const char* name) {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  bool told = fd && ::ioctl(fd.get(), SIOCGIFMTU, &request) == 0;
  return told ? static_cast<uint32_t>(request.ifr_mtu) : 0;
}

}  // namespace

// Without SO_BROADCAST the kernel refuses to connect to a broadcast address (EACCES).
bool is_broadcast(const Ip& address) {
  constexpr uint16_t kDiscard = 9;
  sockaddr_storage name{};
  socklen_t length = to_sockaddr({address, kDiscard}, name);
  Fd fd(::socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return is_mapped_ipv4(address) &&
         ::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 && errno == EACCES;
}

std::optional<Interface> interface_of(const Ip& address) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return std::nullopt;
  std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  for (const ifaddrs* at = first; at; at = at->ifa_next) {
    UdpAddress own;
    if (!at->ifa_addr || !from_sockaddr(*at->ifa_addr, own)) continue;
    if (own.ip == address || (is_loopback(own.ip) && is_loopback(address))) {
      return Interface{at->ifa_name, ::if_nametoindex(at->ifa_name), mtu_of(at->ifa_name),
                       (at->ifa_flags & IFF_UP) != 0, (at->ifa_flags & kLowerUp) != 0};
    }
  }
  return std::nullopt;
}

std::string trouble_with(const Ip& address) {
  // Looks up the interface afterwards: an address removed in between has none.
  bool absent = errno_of_bind(address) == EADDRNOTAVAIL;
  std::optional<Interface> interface = interface_of(address);
  if (interface && !interface->up) return interface->name + " is down";
  if (absent && !interface) return "no interface has this address";
  // Duplicate address detection of IPv6 (RFC 4862, 5.4).
  if (absent) return interface->name + " has not finished duplicate address detection";
  if (interface && !interface->carrier) return interface->name + " has no carrier";
  return {};
}

InterfaceWatch::InterfaceWatch(PollLoop& loop, std::function<void()> changed) : loop_(loop) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  name.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return;
  socket_ = std::move(socket);
  loop_.watch(socket_.get(), [this, changed = std::move(changed)] {
    // Several messages at once count as one change; so does an overrun of the socket's buffer
    // (ENOBUFS).
    std::array<char, 8192> message;
    constexpr int kMaxMessages = 256;
    for (int i = 0; i < kMaxMessages; ++i) {
      ssize_t got = ::recv(socket_.get(), message.data(), message.size(), 0);
      if (got < 0 && errno != ENOBUFS && errno != EINTR) break;
    }
    changed();
  });
}

InterfaceWatch::~InterfaceWatch() {
  if (socket_) loop_.unwatch(socket_.get());
}

// As iboe_get_mtu() of Linux: all headers that a packet may have.
uint32_t roce_mtu(uint32_t ip_mtu) {
  constexpr uint32_t kOverhead = wire::kMaxHeaderLen + wire::kIcrcLen;
  for (uint32_t mtu = kMaxMtu; mtu >= 256; mtu /= 2) {
    if (mtu + kOverhead <= ip_mtu) return mtu;
  }
  return 0;
}

}  // namespace rocefs
