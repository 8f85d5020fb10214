#include "rdma/host/route_watch.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace rocefs {

RouteWatch::RouteWatch(PollLoop& loop, StrangerFd socket, Changed changed)
    : loop_(loop),
      socket_(std::move(socket)),
      changed_(std::move(changed)),
      neighbours_(loop, socket_.get(), NeighbourSearch::Network::kHosts) {
  for (int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR}) {
    (void)::setsockopt(socket_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
  }
  loop_.watch(socket_.get(), [this] { receive(); });
  begin();
}

RouteWatch::~RouteWatch() {
  loop_.unwatch(socket_.get());
}

// Asks for everything: at first, and when the kernel had no room for a message.
void RouteWatch::begin() {
  phase_ = Phase::kLinks;
  for (auto& [index, state] : interfaces_) state.addresses.clear();
  (void)request_dump(socket_.get(), RouteDump::kLinks);
}

// Takes one datagram of the kernel, nobody else's; the loop calls again while there are more.
void RouteWatch::receive() {
  std::array<uint8_t, 32 << 10> bytes;
  sockaddr_nl from{};
  socklen_t size = sizeof from;
  ssize_t got = ::recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                           reinterpret_cast<sockaddr*>(&from), &size);
  if (got < 0 && errno == ENOBUFS) {
    begin();
    return neighbours_.messages_lost();
  }
  if (got <= 0 || from.nl_pid != 0) return;
  auto datagram = std::span(bytes).first(static_cast<size_t>(got));
  read_route_messages(datagram, *this);
  neighbours_.receive(datagram);
}

void RouteWatch::tell(int index) {
  auto it = interfaces_.find(index);
  if (phase_ == Phase::kFollowing && it != interfaces_.end())
    changed_(it->second.name, &it->second);
}

// An interface keeps the name under which it was first seen.
void RouteWatch::link_is(int index, std::string_view name, bool up, uint32_t mtu) {
  State& state = interfaces_[index];
  if (state.name.empty()) state.name = name;
  state.up = up;
  state.mtu = mtu;
  tell(index);
}

void RouteWatch::link_gone(int index) {
  auto it = interfaces_.find(index);
  if (it == interfaces_.end()) return;
  std::string name = it->second.name;
  interfaces_.erase(it);
  changed_(name, nullptr);
}

void RouteWatch::address_is(int index, const Ip& address) {
  interfaces_[index].addresses.insert(address);
  tell(index);
}

void RouteWatch::address_gone(int index, const Ip& address) {
  interfaces_[index].addresses.erase(address);
  tell(index);
}

void RouteWatch::dump_ended() {
  if (phase_ == Phase::kLinks) {
    phase_ = Phase::kAddresses;
    (void)request_dump(socket_.get(), RouteDump::kAddresses);
  } else if (phase_ == Phase::kAddresses) {
    phase_ = Phase::kFollowing;
    for (const auto& [index, state] : interfaces_) changed_(state.name, &state);
  }
}

}  // namespace rocefs
