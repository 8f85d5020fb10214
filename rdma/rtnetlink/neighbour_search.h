// NeighbourSearch: finds out whether the kernel reaches an address: whether it has a route, and
// whether the neighbour behind it answers (ARP, ND). A gateway that answers is enough.
//
// Control thread; waits for nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "core/base/time.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "rdma/rtnetlink/neighbour_messages.h"

namespace rocefs {

class NeighbourSearch final : private NeighbourListener {
 public:
  static constexpr size_t kMaxSearches = 4096;
  // 0, or the kernel's errno: ENETUNREACH, EHOSTUNREACH without a route. ENOMEM beyond
  // kMaxSearches.
  using Answer = std::function<void(int error)>;
  // Whether the socket is of the network namespace of this process, or of a host's.
  enum class Network { kOwn, kHosts };

  // `socket`: of NETLINK_ROUTE. Its owner reads from it, and passes on all datagrams of the kernel.
  NeighbourSearch(PollLoop& loop, int socket, Network network);

  // Without an answer by `patience` the search is dropped silently.
  void find(const Ip& source, const Ip& destination, TimeNs patience, Answer answer);
  void receive(std::span<const uint8_t> datagram);
  // The kernel had no room for messages (ENOBUFS): all searches begin anew.
  void messages_lost();

 private:
  enum class Stage { kRoute, kProbe, kLook, kWait };
  struct Search {
    Ip source{}, destination{};
    TimeNs until = 0;
    Answer answer;
    Stage stage = Stage::kRoute;
    NextHop hop = {};
  };
  using Searches = std::map<uint32_t, Search>;  // by the number of the latest request

  void ask(Search search, Stage stage);
  void end(Searches::iterator at, int error);
  void follow_neighbours(bool wanted);
  void poke(const Search& search);
  void drop_old();
  void route_is(uint32_t sequence, const NextHop& hop) override;
  void route_is_local(uint32_t sequence) override;
  void neighbour_is(uint32_t sequence, const NextHop& neighbour, bool usable) override;
  void request_ended(uint32_t sequence, int error) override;

  const int socket_;
  const Network network_;
  LoopTimer patience_;
  Searches searches_;
  uint32_t last_sequence_ = 0;
  bool follows_ = false;
};

}  // namespace rocefs
