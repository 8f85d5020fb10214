// FlowRendezvous: where mounts that are joined by an uplink announce flows to each other, before a
// packet can: a TCP listener at each address of the uplink, and connections from these addresses.
// Anybody may connect: the number of lines is bounded, and a flood of them costs its own address.
//
// Control thread.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "rdma/packet/datagram.h"
#include "rdma/traffic/rendezvous_line.h"

namespace rocefs {

class FlowRendezvous {
 public:
  static constexpr size_t kMaxLines = 128;  // at a time, of those from others
  static constexpr TimeNs kFirstLine = 5 * kSecond;

  using Warn = std::function<void(const std::string&)>;
  // Called with each new connection from elsewhere: sets its handlers. A first line of text must
  // come within kFirstLine.
  using Arrived = std::function<void(const RendezvousLinePtr&)>;
  FlowRendezvous(PollLoop& loop, std::vector<Ip> addresses, Arrived arrived, Warn warn);
  ~FlowRendezvous();

  // Listens at that port of each address, and no longer at the one before; 0: nowhere. Failures are
  // warned of and tried again each second. Connections stay.
  void listen(uint16_t port);
  // EADDRNOTAVAIL and the like. The line's handlers tell whether the connection succeeds.
  Result<RendezvousLinePtr> connect(const Ip& from, const UdpAddress& to);
  // A line of text for each address, whether it listens, and the number of connections.
  std::string text() const;
  uint16_t port() const { return port_; }
  bool serves(const Ip& address) const;

 private:
  struct Listener {
    Ip address;
    Fd socket;
    std::string trouble;
  };

  void take(Listener& listener);
  bool make_room(const Ip& peer);
  void wait_for_descriptors(Listener& listener);
  void open(Listener& listener);
  void watch(Listener& listener);
  void listen_again();

  PollLoop& loop_;
  Arrived arrived_;
  Warn warn_;
  uint16_t port_ = 0;
  std::vector<Listener> listeners_;
  std::list<RendezvousLinePtr> lines_;  // the oldest first; ended ones leave when others come
  std::list<RendezvousLinePtr> own_;    // connected from here
  bool short_ = false;                  // of descriptors, and warned of
  LoopTimer again_;
};

}  // namespace rocefs
