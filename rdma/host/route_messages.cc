#include "rdma/host/route_messages.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "rdma/rtnetlink/netlink_message.h"

namespace rocefs {
namespace {

using netlink::Bytes;
using netlink::each_attribute;
using netlink::take;

// A bridge speaks of its ports, too, in messages of its own: a port that leaves it is no interface
// that goes.
void read_link(Bytes body, bool gone, RouteListener& listener) {
  ifinfomsg link;
  if (!take(body, link) || link.ifi_family == AF_BRIDGE) return;
  if (gone) return listener.link_gone(link.ifi_index);
  std::string_view name;
  uint32_t mtu = 0;
  each_attribute(body, [&](int type, Bytes value) {
    if (type == IFLA_IFNAME) name = {reinterpret_cast<const char*>(value.data()), value.size()};
    if (type == IFLA_MTU && value.size() == sizeof mtu) std::memcpy(&mtu, value.data(), sizeof mtu);
  });
  listener.link_is(link.ifi_index, name.substr(0, name.find('\0')), link.ifi_flags & IFF_UP, mtu);
}

// IFA_LOCAL is the interface's own address where it differs from IFA_ADDRESS (point to point).
void read_address(Bytes body, bool gone, RouteListener& listener) {
  ifaddrmsg about;
  if (!take(body, about)) return;
  bool ipv6 = about.ifa_family == AF_INET6;
  if (!ipv6 && about.ifa_family != AF_INET) return;
  const size_t size = ipv6 ? 16 : 4;
  uint32_t flags = about.ifa_flags;
  Bytes address, local;
  each_attribute(body, [&](int type, Bytes value) {
    if (type == IFA_ADDRESS && value.size() == size) address = value;
    if (type == IFA_LOCAL && value.size() == size) local = value;
    if (type == IFA_FLAGS && value.size() == sizeof flags) {
      std::memcpy(&flags, value.data(), sizeof flags);
    }
  });
  if (!local.empty()) address = local;
  if (address.empty()) return;
  Ip ip{};
  if (ipv6) {
    std::copy(address.begin(), address.end(), ip.begin());
  } else {
    ip = mapped_ipv4({address[0], address[1], address[2], address[3]});
  }
  auto index = static_cast<int>(about.ifa_index);
  if (gone) return listener.address_gone(index, ip);
  if (!(flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))) listener.address_is(index, ip);
}

}  // namespace

void read_route_messages(Bytes bytes, RouteListener& listener) {
  netlink::each_message(bytes, [&](const nlmsghdr& header, Bytes body) {
    switch (header.nlmsg_type) {
      case RTM_NEWLINK:
      case RTM_DELLINK:
        return read_link(body, header.nlmsg_type == RTM_DELLINK, listener);
      case RTM_NEWADDR:
      case RTM_DELADDR:
        return read_address(body, header.nlmsg_type == RTM_DELADDR, listener);
      case NLMSG_DONE:
        return listener.dump_ended();
    }
  });
}

bool request_dump(int socket, RouteDump what) {
  struct {
    nlmsghdr header{};
    rtgenmsg body{};
  } request;
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.header.nlmsg_type = what == RouteDump::kLinks ? RTM_GETLINK : RTM_GETADDR;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = AF_UNSPEC;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  return ::sendto(socket, &request, request.header.nlmsg_len, MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) > 0;
}

}  // namespace rocefs
