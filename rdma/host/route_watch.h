// RouteWatch: follows the interfaces of a host: whether they are up, their MTU and their addresses;
// and asks for its neighbours.
// Control thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/loop/poll_loop.h"
#include "core/process/closer.h"
#include "rdma/host/route_messages.h"
#include "rdma/rtnetlink/neighbour_search.h"

namespace rocefs {

class RouteWatch final : private RouteListener {
 public:
  struct State {
    std::string name;
    bool up = false;
    uint32_t mtu = 0;
    std::set<Ip> addresses;
  };
  // Called with an interface's new state, and with null when one has gone.
  using Changed = std::function<void(const std::string& name, const State* state)>;

  // `socket`: of NETLINK_ROUTE, in the host's network namespace.
  RouteWatch(PollLoop& loop, StrangerFd socket, Changed changed);
  ~RouteWatch();

  int descriptor() const { return socket_.get(); }
  NeighbourSearch& neighbours() { return neighbours_; }

 private:
  enum class Phase { kLinks, kAddresses, kFollowing };

  void begin();
  void receive();
  void tell(int index);
  void link_is(int index, std::string_view name, bool up, uint32_t mtu) override;
  void link_gone(int index) override;
  void address_is(int index, const Ip& address) override;
  void address_gone(int index, const Ip& address) override;
  void dump_ended() override;

  PollLoop& loop_;
  const StrangerFd socket_;
  const Changed changed_;
  NeighbourSearch neighbours_;  // on the same socket
  Phase phase_ = Phase::kLinks;
  std::map<int, State> interfaces_;  // by the kernel's index
};

}  // namespace rocefs
