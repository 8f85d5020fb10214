#include "rdma/rtnetlink/neighbour_search.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "rdma/rtnetlink/netlink_message.h"

namespace rocefs {
namespace {

socklen_t name_of(const Ip& ip, uint16_t port, sockaddr_storage& out) {
  if (is_mapped_ipv4(ip)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    std::memcpy(&name.sin_addr, ip.data() + 12, sizeof name.sin_addr);
    std::memcpy(&out, &name, sizeof name);
    return sizeof name;
  }
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_port = htons(port);
  std::memcpy(&name.sin6_addr, ip.data(), sizeof name.sin6_addr);
  std::memcpy(&out, &name, sizeof name);
  return sizeof name;
}

}  // namespace

NeighbourSearch::NeighbourSearch(PollLoop& loop, int socket, Network network)
    : socket_(socket), network_(network), patience_(loop, [this] { drop_old(); }) {}

void NeighbourSearch::find(const Ip& source, const Ip& destination, TimeNs patience,
                           Answer answer) {
  if (searches_.size() >= kMaxSearches) return answer(ENOMEM);
  follow_neighbours(true);
  ask({source, destination, monotonic_ns() + patience, std::move(answer)}, Stage::kRoute);
  drop_old();
}

// Sends the stage's request. A request that the kernel does not take ends the search.
void NeighbourSearch::ask(Search search, Stage stage) {
  std::string request = stage == Stage::kRoute   ? route_request(search.source, search.destination)
                        : stage == Stage::kProbe ? probe_request(search.hop)
                                                 : neighbour_request(search.hop);
  while (++last_sequence_ == 0 || searches_.count(last_sequence_) != 0) continue;
  netlink::finish(request, last_sequence_);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  bool sent = ::sendto(socket_, request.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                       reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) > 0;
  int error = sent ? 0 : errno;
  search.stage = stage;
  auto at = searches_.emplace(last_sequence_, std::move(search)).first;
  if (!sent) end(at, error);
}

void NeighbourSearch::end(Searches::iterator at, int error) {
  Answer answer = std::move(at->second.answer);
  searches_.erase(at);
  follow_neighbours(!searches_.empty());
  answer(error);
}

// Changes of neighbours are many on a busy machine: they are heard only while a search waits.
void NeighbourSearch::follow_neighbours(bool wanted) {
  if (std::exchange(follows_, wanted) == wanted) return;
  int group = RTNLGRP_NEIGH;
  (void)::setsockopt(socket_, SOL_NETLINK,
                     wanted ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &group,
                     sizeof group);
}

void NeighbourSearch::drop_old() {
  TimeNs now = monotonic_ns(), next = kNever;
  std::erase_if(searches_, [&](const auto& one) { return one.second.until <= now; });
  for (const auto& [sequence, search] : searches_) next = std::min(next, search.until);
  follow_neighbours(!searches_.empty());
  next == kNever ? patience_.disarm() : patience_.arm(next - now);
}

void NeighbourSearch::receive(std::span<const uint8_t> datagram) {
  if (!searches_.empty()) read_neighbour_messages(datagram, *this);
}

void NeighbourSearch::messages_lost() {
  for (auto& [sequence, search] : std::exchange(searches_, {})) {
    ask(std::move(search), Stage::kRoute);
  }
}

void NeighbourSearch::route_is(uint32_t sequence, const NextHop& hop) {
  auto found = searches_.find(sequence);
  if (found == searches_.end() || found->second.stage != Stage::kRoute) return;
  Search search = std::move(searches_.extract(found).mapped());
  search.hop = hop;
  ask(std::move(search), Stage::kProbe);
}

void NeighbourSearch::route_is_local(uint32_t sequence) {
  auto found = searches_.find(sequence);
  if (found != searches_.end() && found->second.stage == Stage::kRoute) end(found, 0);
}

// A datagram to the discard port makes the kernel look for the neighbour, without privilege.
void NeighbourSearch::poke(const Search& search) {
  constexpr uint16_t kDiscard = 9;
  sockaddr_storage from{}, to{};
  socklen_t from_size = name_of(search.source, 0, from);
  socklen_t to_size = name_of(search.destination, kDiscard, to);
  Fd fd(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&from), from_size) != 0) return;
  (void)::sendto(fd.get(), "", 0, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to), to_size);
}

// Looks at the neighbour after the probe. One that is not there yet is waited for; a kernel that
// tells of no single neighbour (before Linux 5.0) leaves the address as good as known.
void NeighbourSearch::request_ended(uint32_t sequence, int error) {
  auto found = searches_.find(sequence);
  if (found == searches_.end()) return;
  switch (found->second.stage) {
    case Stage::kRoute:
      if (error != 0) end(found, error);
      return;
    case Stage::kProbe: {
      Search search = std::move(searches_.extract(found).mapped());
      if (error == EPERM && network_ == Network::kOwn) poke(search);
      return ask(std::move(search), Stage::kLook);
    }
    case Stage::kLook:
      if (error == EOPNOTSUPP) return end(found, 0);
      found->second.stage = Stage::kWait;
      return;
    case Stage::kWait:
      return;
  }
}

void NeighbourSearch::neighbour_is(uint32_t sequence, const NextHop& neighbour, bool usable) {
  auto looked = searches_.find(sequence);
  if (looked != searches_.end() && looked->second.stage == Stage::kLook) {
    looked->second.stage = Stage::kWait;
  }
  if (!usable) return;
  std::vector<uint32_t> reached;
  for (const auto& [number, search] : searches_) {
    if (search.stage == Stage::kWait && search.hop == neighbour) reached.push_back(number);
  }
  for (uint32_t number : reached) {
    auto found = searches_.find(number);  // an answer may begin and end others
    if (found != searches_.end()) end(found, 0);
  }
}

}  // namespace rocefs
