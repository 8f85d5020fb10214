#include "tools/rocefs/host/route_request.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace rocefs {
namespace {

// A request is built in a string: a header, a body, and attributes.
template <class Body>
std::string begin(uint16_t type, uint16_t flags, const Body& body) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
  std::string request(NLMSG_SPACE(sizeof body), '\0');
  std::memcpy(request.data(), &header, sizeof header);
  std::memcpy(request.data() + NLMSG_HDRLEN, &body, sizeof body);
  return request;
}

void add(std::string& request, uint16_t type, const void* value, size_t size) {
  rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(size)), type};
  size_t at = request.size();
  request.resize(at + RTA_SPACE(size));
  std::memcpy(request.data() + at, &attribute, sizeof attribute);
  std::memcpy(request.data() + at + RTA_LENGTH(0), value, size);
}

void add(std::string& request, uint16_t type, uint32_t value) {
  add(request, type, &value, sizeof value);
}

}  // namespace

Result<RouteClient> RouteClient::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return errorf(errno, "no rtnetlink socket: {}", std::strerror(errno));
  return RouteClient(std::move(socket));
}

Result<void> RouteClient::ask(std::string& request, const std::string& what) {
  auto size = static_cast<uint32_t>(request.size());
  std::memcpy(request.data(), &size, sizeof size);
  if (::send(socket_.get(), request.data(), size, 0) < 0) {
    return errorf(errno, "{}: {}", what, std::strerror(errno));
  }
  alignas(nlmsghdr) char bytes[8192];
  ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  auto* header = reinterpret_cast<nlmsghdr*>(bytes);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))) ||
      header->nlmsg_type != NLMSG_ERROR) {
    return errorf(EPROTO, "{}: no answer of the kernel", what);
  }
  int code = -static_cast<nlmsgerr*>(NLMSG_DATA(header))->error;
  if (code != 0) return errorf(code, "{}: {}", what, std::strerror(code));
  return {};
}

Result<void> RouteClient::set_up(const std::string& interface) {
  ifinfomsg body{};
  body.ifi_index = static_cast<int>(::if_nametoindex(interface.c_str()));
  body.ifi_flags = body.ifi_change = IFF_UP;
  std::string request = begin(RTM_NEWLINK, 0, body);
  return ask(request, interface + " up");
}

// The link-local address is the MAC's EUI-64, as GID 0 is.
Result<void> RouteClient::set_link(const InterfaceLine& line, uint32_t queue_length) {
  ifinfomsg body{};
  body.ifi_index = static_cast<int>(::if_nametoindex(line.name.c_str()));
  std::string request = begin(RTM_NEWLINK, 0, body);
  add(request, IFLA_ADDRESS, line.mac.data(), line.mac.size());
  add(request, IFLA_MTU, line.mtu);
  add(request, IFLA_TXQLEN, queue_length);
  if (Result<void> set = ask(request, line.name); !set) return set;
  return set_up(line.name);
}

Result<void> RouteClient::add_address(const std::string& interface,
                                      const InterfaceAddress& address) {
  ifaddrmsg body{};
  body.ifa_family = address.ipv6 ? AF_INET6 : AF_INET;
  body.ifa_prefixlen = address.prefix;
  body.ifa_index = ::if_nametoindex(interface.c_str());
  body.ifa_flags = address.ipv6 ? IFA_F_NODAD : 0;
  std::string request = begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body);
  add(request, IFA_LOCAL, address.bytes.data(), address.size());
  add(request, IFA_ADDRESS, address.bytes.data(), address.size());
  return ask(request, interface + " " + address.text);
}

Result<void> RouteClient::add_route(const std::string& interface, const InterfaceAddress& to) {
  rtmsg body{};
  body.rtm_family = to.ipv6 ? AF_INET6 : AF_INET;
  body.rtm_dst_len = static_cast<unsigned char>(8 * to.size());
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_LINK;
  body.rtm_type = RTN_UNICAST;
  std::string request = begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, body);
  add(request, RTA_DST, to.bytes.data(), to.size());
  add(request, RTA_OIF, ::if_nametoindex(interface.c_str()));
  return ask(request, interface + ": route to " + to.text);
}

}  // namespace rocefs
