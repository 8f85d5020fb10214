// UdpSender: hands packets to the kernel as UDP datagrams, through io_uring: a bounded number is
// under way, what is too much waits, and order is kept: they are one chain, which a socket without
// room breaks. What was behind it is sent again after it, when there is room.
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
  struct Room final : IoListener {
    UdpSender* owner = nullptr;
    int fd = -1;
    void completed(int, uint32_t) override { owner->room_again(); }
  };

  // False if it has to wait.
  bool hand_over(Packet* packet, TimeNs now);
  size_t under_way() const { return kSends - free_.size(); }
  void end_chain();
  void room_again();
  void go_on();
  void sent(Sending& sending, int result);
  void fail(int code, const Packet& packet);
  bool hear_icmp(int fd);
  void drop(Counter& kind, const std::string& why, uint64_t count = 1);

  Parts parts_;
  UdpSockets sockets_;
  std::unique_ptr<Sending[]> sendings_;
  std::vector<Sending*> free_;
  PacketFifo waiting_;
  size_t waiting_count_ = 0;
  // The chain that is under way.
  size_t chain_ = 0;      // how many it has
  size_t most_ = kSends;  // that it may have: few while they fail, as each ends all behind it
  bool failed_ = false;   // one of them
  int full_fd_ = -1;      // has no room
  std::vector<std::pair<size_t, Packet*>> returned_;  // by their place in it
  Room room_;
  bool held_ = false;                                      // until there is room
  std::vector<std::pair<const Counter*, TimeNs>> warned_;  // of which kind when, last
};

}  // namespace rocefs
