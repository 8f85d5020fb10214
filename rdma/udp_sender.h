// UdpSender: hands packets to the kernel as UDP datagrams, through io_uring: a bounded number is
// under way, what is too much waits, and the order of a flow is kept.
//
// On the core's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io_ring.h"
#include "core/scheduler.h"
#include "rdma/packet.h"
#include "rdma/udp_sockets.h"
#include "rdma/uplink_counters.h"

namespace rocefs {

class UdpSender {
 public:
  struct Parts {
    IoRing& ring;
    PacketPool& pool;
    Scheduler& scheduler;
    UplinkCounters& counters;
    // Enough is under way, or there is room again.
    std::function<void(bool full)> full;
    // Why packets are dropped; each kind of reason at most every ten seconds.
    std::function<void(const std::string&)> warn;
  };
  static constexpr size_t kSends = 256;  // under way

  explicit UdpSender(Parts parts);
  ~UdpSender();

  // A sealed packet, whose headers are as the kernel will make them: IP ID 0, DF. Takes it.
  void send(Packet* packet, TimeNs now);
  // Nothing waits any more; what the kernel has stays with it.
  void reset();

 private:
  struct Sending;

  void hand_over(Packet* packet, TimeNs now);
  void sent(Sending& sending, int result);
  void fail(int code, const Packet& packet);
  void drop(Counter& kind, const std::string& why);

  Parts parts_;
  UdpSockets sockets_;
  std::unique_ptr<Sending[]> sendings_;
  std::vector<Sending*> free_;
  PacketFifo waiting_;                                     // for a free one
  std::vector<std::pair<const Counter*, TimeNs>> warned_;  // of which kind when, last
};

}  // namespace rocefs
