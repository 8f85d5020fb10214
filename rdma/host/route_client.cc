#include "rdma/host/route_client.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "rdma/rtnetlink/netlink_message.h"

namespace rocefs {
namespace {

// Packets that wait in the kernel for a slow or paused cable. A TAP's default of 1000 would hide
// congestion from TCP for 60 MB of segments.
constexpr uint32_t kQueueLength = 128;

using netlink::add;

// A request that the kernel acknowledges.
template <class Body>
std::string begin(uint16_t type, uint16_t flags, const Body& body) {
  return netlink::begin(type, static_cast<uint16_t>(NLM_F_ACK | flags), body);
}

}  // namespace

Result<Fd> open_route_socket() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return errorf(errno, "no rtnetlink socket: {}", std::strerror(errno));
  return socket;
}

// A socket that a program handed over may be connected to anybody: the kernel is named, and others'
// messages are left out.
Result<std::string> RouteClient::exchange(std::string request, const std::string& about) {
  auto failed = [&](int code) { return errorf(code, "{}: {}", about, std::strerror(code)); };
  netlink::finish(request, ++sequence_);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(socket_, request.data(), request.size(), MSG_NOSIGNAL,
               reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) < 0) {
    return failed(errno);
  }
  constexpr int kPatienceMs = 1000;
  constexpr int kMaxMessages = 64;
  for (int i = 0; i < kMaxMessages; ++i) {
    pollfd readable{socket_, POLLIN, 0};
    if (::poll(&readable, 1, kPatienceMs) <= 0) break;
    std::string answer(8192, '\0');
    sockaddr_nl from{};
    socklen_t size = sizeof from;
    ssize_t got = ::recvfrom(socket_, answer.data(), answer.size(), MSG_DONTWAIT,
                             reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0 && errno != EINTR && errno != EAGAIN) return failed(errno);
    if (got < static_cast<ssize_t>(sizeof(nlmsghdr)) || from.nl_pid != 0) continue;
    answer.resize(static_cast<size_t>(got));
    if (reinterpret_cast<nlmsghdr*>(answer.data())->nlmsg_seq == sequence_) return answer;
  }
  return errorf(EPROTO, "{}: no answer of the kernel", about);
}

Result<void> RouteClient::ask(std::string request, const std::string& about) {
  Result<std::string> answer = exchange(std::move(request), about);
  if (!answer) return answer.error();
  nlmsghdr header;
  nlmsgerr result;
  if (answer->size() < NLMSG_LENGTH(sizeof result))
    return errorf(EPROTO, "{}: short answer", about);
  std::memcpy(&header, answer->data(), sizeof header);
  std::memcpy(&result, answer->data() + NLMSG_HDRLEN, sizeof result);
  if (header.nlmsg_type != NLMSG_ERROR) return errorf(EPROTO, "{}: no acknowledgement", about);
  if (result.error != 0) {
    return errorf(-result.error, "{}: {}", about, std::strerror(-result.error));
  }
  return {};
}

// The kernel answers RTM_GETLINK with the interface alone, without an acknowledgement before it.
Result<int> RouteClient::index_of(const std::string& interface) {
  std::string request = begin(RTM_GETLINK, 0, ifinfomsg{});
  reinterpret_cast<nlmsghdr*>(request.data())->nlmsg_flags = NLM_F_REQUEST;
  add(request, IFLA_IFNAME, interface.c_str(), interface.size() + 1);
  Result<std::string> answer = exchange(std::move(request), interface);
  if (!answer) return answer.error();
  nlmsghdr header;
  ifinfomsg link;
  nlmsgerr result;
  std::memcpy(&header, answer->data(), sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR && answer->size() >= NLMSG_LENGTH(sizeof result)) {
    std::memcpy(&result, answer->data() + NLMSG_HDRLEN, sizeof result);
    return errorf(-result.error, "{}: {}", interface, std::strerror(-result.error));
  }
  if (header.nlmsg_type != RTM_NEWLINK || answer->size() < NLMSG_LENGTH(sizeof link)) {
    return errorf(EPROTO, "{}: no answer of the kernel", interface);
  }
  std::memcpy(&link, answer->data() + NLMSG_HDRLEN, sizeof link);
  return link.ifi_index;
}

Result<void> RouteClient::move(const std::string& interface, int network) {
  std::string request = begin(RTM_NEWLINK, 0, ifinfomsg{});
  add(request, IFLA_IFNAME, interface.c_str(), interface.size() + 1);
  add(request, IFLA_NET_NS_FD, static_cast<uint32_t>(network));
  return ask(std::move(request), interface);
}

Result<void> RouteClient::set_up(const std::string& interface) {
  ifinfomsg body{};
  body.ifi_flags = body.ifi_change = IFF_UP;
  std::string request = begin(RTM_NEWLINK, 0, body);
  add(request, IFLA_IFNAME, interface.c_str(), interface.size() + 1);
  return ask(std::move(request), interface + " up");
}

// The link-local address is the MAC's EUI-64, as GID 0 is.
Result<void> RouteClient::set_link(const InterfaceLine& line) {
  std::string request = begin(RTM_NEWLINK, 0, ifinfomsg{});
  add(request, IFLA_IFNAME, line.name.c_str(), line.name.size() + 1);
  add(request, IFLA_ADDRESS, line.mac.data(), line.mac.size());
  add(request, IFLA_MTU, line.mtu);
  add(request, IFLA_TXQLEN, kQueueLength);
  if (Result<void> set = ask(std::move(request), line.name); !set) return set;
  return set_up(line.name);
}

Result<void> RouteClient::add_address(const std::string& interface,
                                      const InterfaceAddress& address) {
  Result<int> index = index_of(interface);
  if (!index) return index.error();
  ifaddrmsg body{};
  body.ifa_family = address.ipv6 ? AF_INET6 : AF_INET;
  body.ifa_prefixlen = address.prefix;
  body.ifa_index = static_cast<uint32_t>(*index);
  body.ifa_flags = address.ipv6 ? IFA_F_NODAD : 0;
  std::string request = begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body);
  add(request, IFA_LOCAL, address.bytes.data(), address.size());
  add(request, IFA_ADDRESS, address.bytes.data(), address.size());
  return ask(std::move(request), interface + " " + address.text);
}

Result<void> RouteClient::add_route(const std::string& interface, const InterfaceAddress& to) {
  Result<int> index = index_of(interface);
  if (!index) return index.error();
  rtmsg body{};
  body.rtm_family = to.ipv6 ? AF_INET6 : AF_INET;
  body.rtm_dst_len = to.prefix;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_LINK;
  body.rtm_type = RTN_UNICAST;
  std::string request = begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, body);
  add(request, RTA_DST, to.bytes.data(), to.size());
  add(request, RTA_OIF, static_cast<uint32_t>(*index));
  return ask(std::move(request), interface + ": route to " + to.text);
}

}  // namespace rocefs
