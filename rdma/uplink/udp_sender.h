// UdpSender: hands packets to the kernel as UDP datagrams, through the engine's I/O. The number of
// messages in progress is bounded; more packets wait in a queue per socket, and the sockets take
// turns: a socket without room holds back its own packets alone, and keeps their order. `full` is
// called when more than kWaiting packets wait.
//
// With GSO, packets of one socket that are close together form one batch that the kernel segments
// late: UdpBatch says which may join. A sealed packet may not, because a capture has recorded it or
// a fault has changed it: it leaves as it is. Packets of a queue pair that varies its source port
// do not overtake each other.
//
// Core thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/loop/core_io.h"
#include "core/loop/scheduler.h"
#include "rdma/packet/packet.h"
#include "rdma/uplink/udp_batch.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/uplink/uplink_counters.h"

namespace rocefs {

class UdpSender final : UdpBatch::Sender {
 public:
  struct Parts {
    CoreIo& io;
    Scheduler& scheduler;
    UplinkCounters& counters;
    Counter& stale;  // packets whose payload has gone
    // The current engine time: a batch that has not grown until then is sent.
    std::function<TimeNs()> clock;
    // Called when too many packets wait, and when there is room again.
    std::function<void(bool full)> full;
    // Reports why packets are dropped; each kind of reason at most every ten seconds.
    std::function<void(const std::string&)> warn;
  };
  static constexpr size_t kSends = 256;     // messages in progress
  static constexpr size_t kWaiting = 1024;  // packets; more are full

  explicit UdpSender(Parts parts);

  // The packet's headers are as the kernel will make them: IP ID 0, DF.
  void send(PacketPtr&& packet, TimeNs now);
  // For packets sent from now on.
  void set_gso(bool wanted);
  // As UdpSockets::set_interface().
  void set_interface(const Ip& own, unsigned index) { sockets_.set_interface(own, index); }
  // Drops waiting packets; messages in progress stay with the kernel.
  void reset();

 private:
  // Packets that wait for one socket.
  struct Flow final : IoListener {
    UdpSender* owner = nullptr;
    UdpAddress from;
    UdpSocket* socket = nullptr;  // socket whose room it waits for
    PacketFifo returned;          // by the kernel: older than all waiting ones
    PacketFifo waiting;
    bool empty() const { return returned.empty() && waiting.empty(); }
    void completed(int, uint32_t) override { owner->has_room(*this); }
  };
  enum class Outcome { kTaken, kNoSlot, kNoRoom };

  // Takes the packet if kTaken.
  Outcome hand_over(PacketPtr& packet, TimeNs now);
  Outcome lost_socket(PacketPtr& packet, const UdpAddress& from, int error);
  Outcome lost_payload();
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
  void take_back(UdpBatch& batch, bool no_room);
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
  std::vector<UdpBatch*> open_;  // batches that packets may join
  Event look_;
  bool gso_ = false;
  std::vector<std::pair<Ip, TimeNs>> singles_;  // destinations without batches, until when
  std::unordered_map<UdpAddress, Flow, UdpAddressHash> flows_;
  std::deque<Flow*> ready_;  // flows that have packets and are not held
  size_t waiting_count_ = 0;
  std::vector<std::pair<const Counter*, TimeNs>> warned_;  // last report of each kind
};

}  // namespace rocefs
