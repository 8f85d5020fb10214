// UdpSender: hands packets to the kernel as UDP datagrams, through io_uring. A bounded number is
// under way; what is too much waits, by its socket, and the sockets take turns: one without room
// holds back its own packets alone, and keeps their order. When more than kWaiting wait, whoever
// sends is told.
//
// With GSO, packets of one socket that come close together are one batch for the kernel, which cuts
// it apart late: UdpBatch says what may join. Not a packet that has been sealed before, because
// somebody has seen it (a capture) or has changed it: it leaves as it is. Packets of a queue pair
// that varies its source port do not overtake each other.
//
// On the core's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/loop/io_ring.h"
#include "core/loop/scheduler.h"
#include "rdma/packet/packet.h"
#include "rdma/uplink/udp_batch.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/uplink/uplink_counters.h"

namespace rocefs {

class UdpSender final : UdpBatch::Sender {
 public:
  struct Parts {
    IoRing& ring;
    PacketPool& pool;
    Scheduler& scheduler;
    UplinkCounters& counters;
    Counter& stale;  // packets whose payload has gone
    // What the clock says: when engine time has come so far, a batch that has not grown meanwhile
    // waits for no more.
    std::function<TimeNs()> clock;
    // Enough waits, or there is room again.
    std::function<void(bool full)> full;
    // Why packets are dropped; each kind of reason at most every ten seconds.
    std::function<void(const std::string&)> warn;
  };
  static constexpr size_t kSends = 256;     // messages under way
  static constexpr size_t kWaiting = 1024;  // packets: then it is full

  explicit UdpSender(Parts parts);
  ~UdpSender();

  // A packet, whose headers are as the kernel will make them: IP ID 0, DF. Takes it.
  void send(Packet* packet, TimeNs now);
  // What is sent from now on.
  void set_gso(bool wanted);
  // Nothing waits any more; what the kernel has stays with it.
  void reset();

 private:
  // What waits for a socket.
  struct Flow final : IoListener {
    UdpSender* owner = nullptr;
    UdpAddress from;
    UdpSocket* socket = nullptr;  // whose room it waits for
    PacketFifo returned;          // by the kernel: older than all that wait
    PacketFifo waiting;
    bool empty() const { return returned.empty() && waiting.empty(); }
    void completed(int, uint32_t) override { owner->has_room(*this); }
  };
  enum class Outcome { kTaken, kNoSlot, kNoRoom };

  Outcome hand_over(Packet* packet, TimeNs now);
  bool seal(Packet* packet);
  Outcome lose(Packet* packet);
  bool may_join(const Packet& packet) const;
  void open(UdpBatch& batch);
  void let_pass(const Packet& packet, const UdpBatch* own);
  void submit(UdpBatch& batch);
  void look(TimeNs now);
  void flush();
  void settle();
  void sent(UdpBatch& batch, int result) override;
  void count(const UdpBatch& batch);
  bool refused(const UdpBatch& batch, int code);
  void take_back(const UdpBatch& batch, bool no_room);
  Flow& flow_of(const Packet& packet);
  void hold(Flow& flow, UdpSocket& socket);
  void has_room(Flow& flow);
  void serve();
  bool serve(Flow& flow, TimeNs now);
  void fail(int code, const Packet& packet);
  bool hear_icmp(int fd);
  void report(Counter& kind, const std::string& why, uint64_t count = 1);

  Parts parts_;
  UdpSockets sockets_;
  std::unique_ptr<UdpBatch[]> batches_;
  std::vector<UdpBatch*> free_;
  std::vector<UdpBatch*> open_;  // that more may join
  Event look_;
  bool gso_ = false;
  std::vector<std::pair<Ip, TimeNs>> singles_;  // who gets no batches, until when
  std::unordered_map<UdpAddress, Flow, UdpAddressHash> flows_;
  std::deque<Flow*> ready_;  // that have packets and are not held
  size_t waiting_count_ = 0;
  std::vector<std::pair<const Counter*, TimeNs>> warned_;  // of which kind when, last
};

}  // namespace rocefs
