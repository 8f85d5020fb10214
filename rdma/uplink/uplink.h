// Uplink: connects a fabric to the kernel's network: packets leave and enter as UDP datagrams to
// and from port 4791 (IBTA annex A17), through the engine's I/O. A node with one cable. The
// addresses of the ports that it serves must be the machine's: sockets are bound to them
// (rdma/uplink/uplink_addresses.h).
//
// Core thread; any thread may read counters.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/topology.h"
#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "rdma/fabric/link.h"
#include "rdma/fabric/priority_turn.h"
#include "rdma/packet/icrc_solver.h"
#include "rdma/uplink/udp_sender.h"
#include "rdma/uplink/uplink_addresses.h"
#include "rdma/uplink/uplink_counters.h"
#include "rdma/uplink/uplink_groups.h"

namespace rocefs {

inline constexpr KnobRow kUplinkKnobs[] = {
    {"gso", KnobType::kBool, 0, 1, "0", "", "",
     "on: packets of one source port to one destination are passed to the kernel in batches "
     "(UDP_SEGMENT), and received so (UDP_GRO): much faster. Captured packets leave one by one"},
};

class Uplink final : public LinkSource, public LinkSink, public KnobOwner {
 public:
  using Warn = std::function<void(const std::string&)>;

  // `stale` counts packets whose payload has gone.
  Uplink(std::string name, PacketPool& pool, Scheduler& scheduler, Counter& stale);
  ~Uplink() override;

  const std::string& name() const { return name_; }
  // `out` leads to the fabric, `in` comes from it.
  void attach(Link& out, Link& in);
  // Adds an address behind the uplink, and its port. Link-local addresses stay inside: they are
  // meaningless without an interface.
  void serve(const Ip& address, UplinkedPort& port);
  // Whether an address is one of the fabric's: what comes from it to a group has left by an uplink
  // of this fabric, and was looped back by the kernel. Before open().
  void set_inside(std::function<bool(const Ip&)> inside) { inside_ = std::move(inside); }
  // Whether queue pairs behind a port are in a multicast group, whose packets are then received at
  // the port's addresses that are the machine's. Core thread.
  void set_member(const UplinkedPort& port, const Ip& group, bool member);

  // Before the engine starts: binds UDP port 4791 of every address that is the machine's.
  // EOPNOTSUPP under the virtual clock, ENOSYS if io_uring is asked for and lacks multishot
  // reception, EADDRINUSE, EADDRNOTAVAIL if no address is the machine's. Notices go to `warn`, on
  // the core's or the control thread. Without open(), every leaving packet is dropped. At a
  // takeover the last two are not errors: `warn` reports them, and binding is retried. `saved`: the
  // dead worker's addresses, or null.
  enum class At { kStart, kTakeover };
  Result<void> open(Engine& engine, PollLoop& loop, Warn warn, At at = At::kStart,
                    SavedAddresses* saved = nullptr);
  // After open(): bound addresses (any thread), and addresses that should be bound (control
  // thread).
  std::vector<Ip> addresses() const { return addresses_->bound(); }
  std::vector<Ip> own_addresses() const { return addresses_->ours(); }
  UplinkCounters& counters() { return counters_; }

  // Knobs, in the order of kUplinkKnobs. Before the engine starts, or on the core's thread.
  void apply(std::span<const KnobValue> values) override;
  static std::vector<KnobValue> values_of(const UplinkSpec& spec) { return {uint64_t{spec.gso}}; }
  bool gso() const { return gso_; }

  void receive(Packet* packet, TimeNs now) override;
  Packet* pull(TimeNs now) override;
  bool ready() override { return (waiting_in_ & ~out_->paused()) != 0; }
  // Drops waiting packets; messages in progress stay with the kernel.
  void reset();

 private:
  static constexpr size_t kReceived = 4096;  // packets that wait for the cable
  // Buffers of a receiving socket: one packet each, or several merged by the kernel.
  static constexpr unsigned kBuffers = 64, kBatchBuffers = 16;
  static constexpr size_t kMaxBatch = 65'535;

  struct Endpoint;

  void bound(const Ip& address, Fd socket);
  void unbound(const Ip& address);
  void group_bound(const Ip& group, Fd socket);
  void group_unbound(const Ip& group);
  bool sends_from(const Ip& own) const;
  void listen(Endpoint& endpoint);
  void check_buffer(int fd);
  void pause(bool wanted);
  void take(Endpoint& endpoint, const Datagram& datagram);
  struct Told;
  void take_packet(const Endpoint& endpoint, const UdpAddress& from, const Told& told,
                   std::span<uint8_t> bytes, uint16_t place);

  const std::string name_;
  PacketPool& pool_;
  Scheduler& scheduler_;
  Counter& stale_;
  UplinkCounters counters_;
  std::vector<UplinkAddresses::Served> served_;
  std::function<bool(const Ip&)> inside_;
  std::unique_ptr<UplinkGroups> groups_;        // after open()
  std::unique_ptr<UplinkAddresses> addresses_;  // after open()
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  bool receiving_ = false;       // the engine has started
  bool buffer_checked_ = false;  // control thread
  Engine* engine_ = nullptr;
  Warn warn_;
  std::unique_ptr<UdpSender> sender_;  // after open()
  bool gso_ = false;
  bool pausing_ = false;
  const IcrcSolver solver_;
  std::array<PacketFifo, kPriorities> received_;
  size_t received_count_ = 0;
  uint8_t waiting_in_ = 0;  // priorities with packets in received_, a bit each
  PriorityTurn turn_;
  Link* out_ = nullptr;
  Link* in_ = nullptr;
};

}  // namespace rocefs
