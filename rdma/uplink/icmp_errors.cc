#include "rdma/uplink/icmp_errors.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "rdma/uplink/socket_address.h"

namespace rocefs {
namespace {

void note(const sock_extended_err& error, const sockaddr& to, IcmpErrors& all) {
  if (error.ee_origin != SO_EE_ORIGIN_ICMP && error.ee_origin != SO_EE_ORIGIN_ICMP6) return;
  auto code = static_cast<int>(error.ee_errno);
  ++(code == ECONNREFUSED ? all.refused : code == EMSGSIZE ? all.too_long : all.unreachable);
  UdpAddress address;
  if (from_sockaddr(to, address)) all.to = address.ip;
  all.why = code == EMSGSIZE ? fmt::format("longer than the path's MTU of {}", error.ee_info)
                             : std::strerror(code);
}

}  // namespace

void keep_icmp_errors(int fd, bool ipv6) {
  int yes = 1;
  (void)::setsockopt(fd, ipv6 ? static_cast<int>(IPPROTO_IPV6) : static_cast<int>(IPPROTO_IP),
                     ipv6 ? IPV6_RECVERR : IP_RECVERR, &yes, sizeof yes);
}

IcmpErrors take_icmp_errors(int fd) {
  constexpr int kMaxErrors = 64;
  IcmpErrors all;
  for (int i = 0; i < kMaxErrors; ++i) {
    sockaddr_storage to{};
    alignas(cmsghdr) char control[256];
    char start;  // of the datagram: qemu-user receives no message without room for an octet
    iovec part{&start, sizeof start};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    for (cmsghdr* at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
      bool told = (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR) ||
                  (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR);
      if (!told || at->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) continue;
      sock_extended_err error;
      std::memcpy(&error, CMSG_DATA(at), sizeof error);
      note(error, reinterpret_cast<sockaddr&>(to), all);
    }
  }
  return all;
}

}  // namespace rocefs
