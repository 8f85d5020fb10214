#include "rdma/rtnetlink/neighbour_messages.h"

#include <linux/neighbour.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>

#include "rdma/rtnetlink/netlink_message.h"

namespace rocefs {
namespace {

using netlink::Bytes;

constexpr size_t kIpv4At = 12;

Bytes octets_of(const Ip& ip) {
  return is_mapped_ipv4(ip) ? Bytes(ip).subspan(kIpv4At) : Bytes(ip);
}

uint8_t family_of(const Ip& ip) {
  return is_mapped_ipv4(ip) ? AF_INET : AF_INET6;
}

std::optional<Ip> ip_of(Bytes octets) {
  if (octets.size() == 4) return mapped_ipv4({octets[0], octets[1], octets[2], octets[3]});
  Ip ip{};
  if (octets.size() != ip.size()) return std::nullopt;
  std::copy(octets.begin(), octets.end(), ip.begin());
  return ip;
}

void add_ip(std::string& request, uint16_t type, const Ip& ip) {
  netlink::add(request, type, octets_of(ip).data(), octets_of(ip).size());
}

int error_of(uint8_t route_type) {
  switch (route_type) {
    case RTN_UNREACHABLE:
      return EHOSTUNREACH;
    case RTN_PROHIBIT:
      return EACCES;
    default:
      return EINVAL;
  }
}

void read_route(uint32_t sequence, Bytes body, NeighbourListener& listener) {
  rtmsg route;
  if (!netlink::take(body, route)) return;
  NextHop hop;
  std::optional<Ip> destination, gateway;
  netlink::each_attribute(body, [&](int type, Bytes value) {
    if (type == RTA_DST) destination = ip_of(value);
    if (type == RTA_GATEWAY) gateway = ip_of(value);
    // A gateway of the other family; its family comes first.
    if (type == RTA_VIA && value.size() > sizeof(uint16_t)) {
      gateway = ip_of(value.subspan(sizeof(uint16_t)));
    }
    if (type == RTA_OIF && value.size() == sizeof hop.interface) {
      std::memcpy(&hop.interface, value.data(), sizeof hop.interface);
    }
  });
  switch (route.rtm_type) {
    case RTN_LOCAL:
    case RTN_BROADCAST:
    case RTN_ANYCAST:
    case RTN_MULTICAST:
      return listener.route_is_local(sequence);
    case RTN_UNICAST:
      if (!gateway) gateway = destination;
      if (!gateway) return;
      hop.address = *gateway;
      return listener.route_is(sequence, hop);
    default:
      listener.request_ended(sequence, error_of(route.rtm_type));
  }
}

void read_neighbour(uint32_t sequence, Bytes body, bool gone, NeighbourListener& listener) {
  constexpr int kValid =
      NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
  ndmsg about;
  if (!netlink::take(body, about)) return;
  std::optional<Ip> address;
  netlink::each_attribute(body, [&](int type, Bytes value) {
    if (type == NDA_DST) address = ip_of(value);
  });
  if (!address) return;
  bool usable = !gone && (about.ndm_state & kValid) != 0;
  listener.neighbour_is(sequence, {about.ndm_ifindex, *address}, usable);
}

ndmsg about(const NextHop& neighbour) {
  ndmsg body{};
  body.ndm_family = family_of(neighbour.address);
  body.ndm_ifindex = neighbour.interface;
  return body;
}

}  // namespace

std::string route_request(const Ip& source, const Ip& destination) {
  rtmsg body{};
  body.rtm_family = family_of(destination);
  body.rtm_dst_len = body.rtm_src_len = static_cast<uint8_t>(8 * octets_of(destination).size());
  std::string request = netlink::begin(RTM_GETROUTE, 0, body);
  add_ip(request, RTA_DST, destination);
  add_ip(request, RTA_SRC, source);
  return request;
}

std::string probe_request(const NextHop& neighbour) {
  ndmsg body = about(neighbour);
  body.ndm_state = NUD_NONE;
  body.ndm_flags = NTF_USE;
  std::string request = netlink::begin(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, body);
  add_ip(request, NDA_DST, neighbour.address);
  return request;
}

std::string neighbour_request(const NextHop& neighbour) {
  std::string request = netlink::begin(RTM_GETNEIGH, 0, about(neighbour));
  add_ip(request, NDA_DST, neighbour.address);
  return request;
}

void read_neighbour_messages(Bytes bytes, NeighbourListener& listener) {
  netlink::each_message(bytes, [&](const nlmsghdr& header, Bytes body) {
    nlmsgerr result;
    switch (header.nlmsg_type) {
      case RTM_NEWROUTE:
        return read_route(header.nlmsg_seq, body, listener);
      case RTM_NEWNEIGH:
      case RTM_DELNEIGH:
        return read_neighbour(header.nlmsg_seq, body, header.nlmsg_type == RTM_DELNEIGH, listener);
      case NLMSG_ERROR:
        if (netlink::take(body, result)) listener.request_ended(header.nlmsg_seq, -result.error);
    }
  });
}

}  // namespace rocefs
