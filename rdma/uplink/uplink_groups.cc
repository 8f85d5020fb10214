#include "rdma/uplink/uplink_groups.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/uplink/interface.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/bytes.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

// Returns an errno.
int set_membership(int fd, const Ip& group, unsigned interface, bool wanted) {
  int done = 0;
  if (is_mapped_ipv4(group)) {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, group.data() + 12, sizeof request.imr_multiaddr);
    request.imr_ifindex = static_cast<int>(interface);
    int name = wanted ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP;
    done = ::setsockopt(fd, IPPROTO_IP, name, &request, sizeof request);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.data(), sizeof request.ipv6mr_multiaddr);
    request.ipv6mr_interface = interface;
    int name = wanted ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP;
    done = ::setsockopt(fd, IPPROTO_IPV6, name, &request, sizeof request);
  }
  return done == 0 ? 0 : errno;
}

bool joined_on(const std::map<Ip, unsigned>& members, unsigned interface) {
  return std::any_of(members.begin(), members.end(),
                     [&](const auto& one) { return one.second == interface; });
}

}  // namespace

void UplinkGroups::set_member(const Ip& own, const Ip& group, bool wanted) {
  auto found = groups_.find(group);
  if (!wanted) {
    if (found == groups_.end() || !found->second.members.contains(own)) return;
    leave(group, found->second, own);
    if (!found->second.members.empty()) return;
    bool receives = static_cast<bool>(found->second.socket);
    groups_.erase(found);
    if (receives) parts_.unbound(group);
    return;
  }
  if (found == groups_.end() && groups_.size() >= kMaxGroups) {
    return warnings_.say(fmt::format("group {} stays inside: there are {} groups already",
                                     ip_text(group), kMaxGroups));
  }
  join(group, groups_[group], own);
}

// The socket stays open here too, for later changes: the core receives from a copy.
void UplinkGroups::join(const Ip& ip, Group& group, const Ip& own) {
  unsigned& at = group.members[own];
  auto fail = [&](const std::string& why) {
    warnings_.say(fmt::format("group {} of {} stays inside: {}", ip_text(ip), ip_text(own), why));
  };
  if (!group.socket) {
    Result<Fd> opened = open_udp({ip, wire::kRocePort}, UdpUse::kReceiveGroup);
    if (!opened) return fail(opened.error().reason);
    Fd copy(::fcntl(opened->get(), F_DUPFD_CLOEXEC, 0));
    if (!copy) return fail(std::strerror(errno));
    group.socket = std::move(*opened);
    parts_.bound(ip, std::move(copy));
  }
  std::optional<Interface> interface = interface_of(own);
  if (!interface) return fail("no interface has the address");
  int error = joined_on(group.members, interface->index)
                  ? 0
                  : set_membership(group.socket.get(), ip, interface->index, true);
  if (error != 0) return fail(fmt::format("{}: {}", interface->name, std::strerror(error)));
  at = interface->index;
}

void UplinkGroups::leave(const Ip& ip, Group& group, const Ip& own) {
  unsigned interface = group.members[own];
  group.members.erase(own);
  if (interface == 0 || joined_on(group.members, interface) || !group.socket) return;
  (void)set_membership(group.socket.get(), ip, interface, false);
}

void UplinkGroups::renew() {
  for (auto& [ip, group] : groups_) {
    for (auto& [own, at] : group.members) {
      std::optional<Interface> interface = interface_of(own);
      if (!interface || interface->index == at) continue;
      at = 0;
      join(ip, group, own);
    }
  }
}

void UplinkGroups::lost(const Ip& group) {
  auto found = groups_.find(group);
  if (found == groups_.end()) return;
  found->second.socket.reset();
  for (auto& [own, at] : found->second.members) at = 0;
}

}  // namespace rocefs
