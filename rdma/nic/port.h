// Port: a port of a NIC. Pulls the next packet from its queue pairs when its link is free, so that
// a NIC never drops what it sends itself, and hands arriving packets to their queue pair. Core
// thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/config/topology.h"
#include "core/loop/scheduler.h"
#include "rdma/fabric/link.h"
#include "rdma/fabric/priority_turn.h"
#include "rdma/fabric/uplinked_port.h"
#include "rdma/nic/cnp_queue.h"
#include "rdma/nic/gsi.h"
#include "rdma/nic/interface_counters.h"
#include "rdma/nic/net_interface.h"
#include "rdma/nic/port_host.h"
#include "rdma/nic/qp_fifos.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/traffic_class.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

class Port final : public PortBase, public LinkSource, public LinkSink, public UplinkedPort {
 public:
  Port(PortHost& host, const PortSpec& spec, uint8_t number);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Attaches the two directions of the cable: the port is source of `egress` and sink of `ingress`.
  // Packets to the port's own addresses come back from a switch. Without one they are looped.
  void attach(Link& egress, Link& ingress, bool to_switch);
  std::string name() const override;
  // Octets of payload: at most the spec's, and at most what the machine's network and the host's
  // interface carry for the port.
  uint32_t mtu() const override { return mtu_.load(std::memory_order_relaxed); }  // any thread
  uint32_t largest_mtu() const override { return spec_.mtu; }
  // Queue pairs with a longer path MTU keep it.
  void set_mtu(uint32_t mtu) override { set_side(uplink_.mtu, mtu); }
  // LIDs of the port and of the subnet manager; 0 without a subnet. Any thread. Set before the
  // engine starts; the manager's changes when a subnet manager takes the subnet over: core thread.
  struct Lids {
    uint16_t own = 0, manager = 0;
  };
  void set_lids(const Lids& lids) {
    lid_ = lids.own;
    set_manager_lid(lids.manager);
  }
  void set_manager_lid(uint16_t lid) { manager_lid_.store(lid, std::memory_order_relaxed); }
  Lids lids() const { return {lid_, manager_lid_.load(std::memory_order_relaxed)}; }
  bool link_up() const { return link_up_; }
  void set_carrier(bool carrier) override { set_side(uplink_.carrier, carrier); }
  // The same for the interface of a host. The port has carrier if both sides say so.
  void set_host_mtu(uint32_t mtu) { set_side(of_host_.mtu, mtu); }
  void set_host_carrier(bool carrier) { set_side(of_host_.carrier, carrier); }
  bool carrier() const override { return carrier_.load(std::memory_order_relaxed); }
  // Control thread: `listener` runs after each change, when carrier() and mtu() show it.
  void on_network(std::function<void()> listener) { on_network_ = std::move(listener); }
  void network_changed() override {
    if (on_network_) on_network_();
  }

  uint64_t line_bps() const override { return egress_ ? egress_->parameters().rate_bps : 0; }
  double receive_ns(uint64_t octets) const override { return ingress_->serialization_ns(octets); }
  // Plugs the interface of a host in, or out (null). Without one, Ethernet frames end here.
  void plug(NetInterface* interface);
  NetInterface* interface() const { return interface_; }
  // Whether the interface has carrier: the link is up, and the device has its driver.
  bool interface_up() const { return link_up_ && host_.present(); }
  // The device has lost its driver, or has one again.
  void presence_changed() {
    if (interface_) interface_->carrier_changed(interface_up());
  }
  // Control thread: the GIDs and the MTU of the host's interface, as files show them.
  // network_changed() follows.
  struct Shown {
    GidTable::Entries gids{};
    uint32_t interface_mtu = 0;  // 0: no host has one, it follows mtu()
  };
  void show(const Shown& shown) { shown_ = shown; }
  const Shown& shown() const { return shown_; }
  InterfaceCounters& interface_counters() { return interface_counters_; }

  CnpQueue& cnps() { return cnps_; }
  Gsi& gsi() { return gsi_; }

  // Order: CNPs, MADs, acknowledgements, data. The last two take turns by priority, then by queue
  // pair. A turn of data is one packet, or as many as the queue pair may send in two microseconds
  // of the link, so that those of a fast one stay together. Frames of the host take turns with
  // turns of data. Priorities that PFC has paused wait.
  Packet* pull(TimeNs now) override;
  // True also when all priorities are paused: pull() notes when the wait begins.
  bool ready() override {
    return cnps_.ready() || gsi_.ready() ||
           (acknowledges_.ready() | data_.ready() | waiting_frames()) != 0;
  }
  void receive(Packet* packet, TimeNs now) override;
  void prefetch(const Packet& packet, int step) const override;
  void prefetch(int step) const override;
  // Takes octets from outside, from the IP header to the ICRC, valid or not.
  void receive_bytes(std::span<const uint8_t> bytes, TimeNs now);

  void add_data(Qp& qp) override;
  void add_acknowledge(Qp& qp) override;
  void forget(Qp& qp) override;
  void notify(Qp& qp, CnpCause cause, const CnpAddress& address, TimeNs now) override {
    cnps_.notify(qp, cause, address, now);
  }
  // port_xmit_wait, with a wait that goes on.
  uint64_t xmit_wait_ns(TimeNs now) const;
  // Drops queued packets when the fabric is reset.
  void reset();

 private:
  friend class Device;

  // A side that limits the port: its uplink, or the interface of a host.
  struct Side {
    uint32_t mtu;
    bool carrier = true;
  };
  template <class T>
  void set_side(T& part, T value) {
    if (std::exchange(part, value) != value) combine_sides();
  }

  void combine_sides();
  uint8_t waiting_frames() const { return interface_ ? interface_->waiting() : 0; }
  PacketPtr next_frame(uint8_t open);
  void receive_frame(PacketPtr&& frame, TimeNs now);
  void on_link_state();
  PacketPtr next_data(size_t priority, TimeNs now);
  void note_wait(bool sends, TimeNs now);
  PacketPtr next_packet(TimeNs now);
  // Steps of receive(), inlined: each packet goes through all of them.
  [[gnu::always_inline]] bool check(const Packet& packet, const wire::Transport& headers);
  [[gnu::always_inline]] void take(PacketPtr&& packet, const wire::Transport& headers,
                                   bool multicast, TimeNs now);
  [[gnu::always_inline]] Qp* find_qp(uint32_t number, const Packet& packet,
                                     const wire::Transport& headers);
  [[gnu::always_inline]] void deliver(Qp& qp, PacketPtr&& packet, const wire::Transport& headers,
                                      TimeNs now);
  void take_mark(Qp& qp, const Packet& packet, const wire::Transport& headers, TimeNs now);
  void take_cnp(const Packet& packet, const wire::Transport& headers, TimeNs now);
  void deliver_to_group(const Packet& packet, TimeNs now);
  void loop(PacketPtr&& packet, TimeNs now);
  void take_looped(TimeNs now);

  uint16_t lid_ = 0;
  std::atomic<uint16_t> manager_lid_{0};
  bool link_up_ = false;
  Side uplink_, of_host_;
  std::atomic<bool> carrier_{true};  // of both sides
  std::atomic<uint32_t> mtu_;        // the lesser one
  std::function<void()> on_network_;
  Shown shown_;
  CnpQueue cnps_;
  Gsi gsi_;
  QpFifos<&Qp::Links::next_data> data_;
  QpFifos<&Qp::Links::next_acknowledge> acknowledges_;
  alignas(64) NetInterface* interface_ = nullptr;
  TimeNs waiting_since_ = kNever;  // all that could be transmitted is paused
  TimeNs loops_until_ = 0;         // nothing is transmitted before
  bool loops_own_ = false;         // the cable leads to no switch
  bool frames_next_ = false;       // a turn of data has ended since the last frame
  PriorityTurn frame_turn_;
  InterfaceCounters interface_counters_;
  PacketFifo looped_;  // own packets for this device
  Event loop_;
};

}  // namespace rocefs
