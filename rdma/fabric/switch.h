// Switch: forwards by destination address, RoCE packets by IP address and Ethernet frames by MAC,
// over equal-cost paths by a hash of the five-tuple, into a queue per egress port and priority.
// Stores packets in one buffer, marks them by the length of their queue (ECN), and pauses senders
// by priority (PFC). Links may have tighter limits: a stored packet counts against its egress and
// its ingress. One that is copied to several egress ports is stored once.
//
// Core thread; any thread may read counters and gauges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/counter.h"
#include "core/base/object_row.h"
#include "core/base/rng.h"
#include "core/tree/knob.h"
#include "rdma/fabric/destination_table.h"
#include "rdma/fabric/flooded_packets.h"
#include "rdma/fabric/link.h"
#include "rdma/fabric/queue_times.h"
#include "rdma/fabric/route_table.h"
#include "rdma/fabric/switch_port.h"
#include "rdma/fabric/switch_settings.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// Ingress of a copy: that of its packet among the flooded ones.
inline constexpr uint16_t kFlooded = 0xfffe;

// Called for each queued packet. Ports are counted from 0.
class SwitchObserver {
 public:
  virtual ~SwitchObserver() = default;
  // `packet`, received through port `ingress`, was queued at port `egress`, last of its priority.
  virtual void enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs now) = 0;
};

class alignas(64) Switch final : public KnobOwner {
 public:
  // `number`: among the switches of its fabric, whose `destinations` outlive it. `unroutable`
  // counts packets without a route. `cables`: how many ports will be added.
  Switch(std::string name, uint32_t number, const DestinationTable& destinations, uint64_t seed,
         Counter& unroutable, size_t cables);

  const std::string& name() const { return name_; }
  uint32_t number() const { return number_; }
  // Memory for the links out of the switch, made in the order of ports.
  ObjectRow<Link>& outs() { return outs_; }
  // Adds a cable: `in` leads to this switch, `out`, the next of outs(), away from it.
  LinkSink& add_port(Link& in, Link& out);
  // Source of a link out of this switch.
  LinkSource& source(const Link& out);
  // Sets the ports through which the switch with that number is nearest; none: it cannot be
  // reached.
  void set_route(size_t hub, std::span<const uint16_t> ports) { routes_.set(hub, ports); }
  void forget_routes() { routes_.clear(); }
  // Sets the next hops of destinations that are unknown or cannot be reached.
  void set_default_route(std::span<const uint16_t> ports) {
    default_hops_.assign(ports.begin(), ports.end());
  }
  const RouteTable& routes() const { return routes_; }
  // Sets the links for packets to a group, and for frames to a MAC without a route, except the one
  // they came from: ends, and a tree of switches.
  void set_flood(std::span<const Link* const> links) { flood_ = ports_of(links); }
  // Drops all packets and pauses, restarts random numbers. Links have been reset.
  void reset();
  // Core thread.
  void clear_counters();

  size_t port_count() const { return count_; }
  SwitchPort& port(size_t index) { return ports_[index]; }
  const SwitchPort& port(size_t index) const { return ports_[index]; }
  EgressQueue& queue(size_t port, size_t priority) { return queues_[priority * cables_ + port]; }
  const EgressQueue& queue(size_t port, size_t priority) const {
    return queues_[priority * cables_ + port];
  }
  // The egress port of the packet at present; empty without a route.
  std::optional<size_t> route(const Packet& packet) const;
  // Sends a packet made by the switch, such as a CNP. False if it was dropped.
  bool send(PacketPtr&& packet, TimeNs now);
  // At most one observer; null removes it.
  void set_observer(SwitchObserver* observer) { observer_ = observer; }
  bool observed() const { return observer_ != nullptr; }
  // Measures the egress queues from now on: EgressQueue::times. All ports have been added. `into`
  // outlives the switch's last packet.
  void measure_queues(QueueTimes& into, TimeNs now);
  // Adds the time up to `now`, if they are measured.
  void note_queues(TimeNs now);

  // Octets stored at all ports, and their maximum. Any thread.
  const Counter& used() const { return used_; }
  Counter& peak() { return peak_; }
  RoomCounters& drops() { return drops_; }
  const SwitchSettings& settings() const { return settings_; }
  const BufferPlan& plan() const { return plan_; }

  // `warn` gets notices about accepted settings, on the core's thread.
  void set_warning(std::function<void(const std::string&)> warn);
  // Knobs, in the order of kSwitchKnobs.
  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override;

 private:
  friend IngressPort;
  friend EgressPort;

  std::span<SwitchPort> ports() const { return {ports_.get(), count_}; }
  std::span<EgressQueue> queues() const { return {queues_.get(), kPriorities * cables_}; }
  std::span<PortRest> rests() const { return {rests_.get(), count_}; }
  SwitchPort& port_of(const Link& out) const;
  std::vector<uint16_t> ports_of(std::span<const Link* const> links) const;
  std::span<const uint16_t> way_to(const Packet& packet) const;
  std::span<const uint16_t> hops_of(const Packet& packet) const;
  void forward(IngressPort& from, PacketPtr&& packet, TimeNs now);
  void forward_frame(IngressPort& from, PacketPtr&& frame, TimeNs now);
  void flood(IngressPort& from, const Packet& packet, TimeNs now);
  static constexpr uint32_t kNoCopy = ~0u;
  // `from` is null for packets of the switch itself. `flooded`: the packet's number, of a copy.
  // False if the packet was dropped.
  bool enqueue(IngressPort* from, EgressPort& to, PacketPtr&& packet, TimeNs now,
               uint32_t flooded = kNoCopy);
  PacketPtr dequeue(EgressPort& from, TimeNs now);
  void prefetch_pull(const EgressPort& from, int step) const;
  void prefetch_receive(const Packet& packet, int step) const;
  size_t next_hop(const Packet& packet, std::span<const uint16_t> hops) const;
  // Room that a packet lacks: the link whose limit is reached, or which the packet came by.
  struct Shortage {
    Link* link = nullptr;  // null if there is room
    Counter RoomCounters::*room = nullptr;
  };
  Shortage shortage(IngressPort* from, EgressPort& to, size_t priority, uint64_t length,
                    bool stored) const;
  bool excused(const IngressPort* from, size_t priority, uint64_t length, TimeNs now) const;
  void take_room(IngressPort* from, size_t priority, uint64_t length);
  void free_room(const Packet& packet, size_t priority, uint64_t length);
  void note_length(EgressQueue& queue, TimeNs now);
  void mark(EgressPort& port, size_t priority, Packet& packet);
  static void stamp(const EgressPort& port, const EgressQueue& queue, Packet& packet, TimeNs now);
  void pause(IngressPort& port, size_t priority);
  void resume(IngressPort& port, size_t priority);
  uint64_t headroom_for(const SwitchSettings& settings, uint64_t needed) const;
  void make_plan();
  void note_headroom();
  void warn_of_late_marks();

  // Fields that packets need come first, in few cache lines. Ports, queues and links lie side by
  // side: their addresses are computed, where pointers to them would cost a miss.
  const DestinationTable& destinations_;
  const std::unique_ptr<SwitchPort[]> ports_;
  // By priority, then by port: most fabrics use few priorities.
  const std::unique_ptr<EgressQueue[]> queues_;
  const size_t cables_;  // room for ports
  ObjectRow<Link> outs_;
  Counter used_, peak_;
  RouteTable routes_;
  const uint32_t number_;
  SwitchObserver* observer_ = nullptr;
  QueueTimes* queue_times_ = nullptr;  // null: queues are not measured
  SwitchSettings settings_ = SwitchSettings::initial();
  BufferPlan plan_;
  RedMarker marker_;

  const std::unique_ptr<PortRest[]> rests_;
  size_t count_ = 0;  // ports that were added
  std::vector<uint16_t> default_hops_;
  std::vector<uint16_t> flood_;
  FloodedPackets flooded_;
  RoomCounters drops_;
  Counter& unroutable_;
  const std::string name_;
  const uint64_t seed_;
  std::function<void(const std::string&)> warn_;
};

inline void IngressPort::receive(Packet* arriving, TimeNs now) {
  PacketPtr packet(arriving);
  owner->forward(*this, std::move(packet), now);
}
inline void IngressPort::prefetch(const Packet& packet, int step) const {
  owner->prefetch_receive(packet, step);
}
inline Packet* EgressPort::pull(TimeNs now) {
  return owner->dequeue(*this, now).release();
}
inline void EgressPort::prefetch(int step) const {
  owner->prefetch_pull(*this, step);
}

}  // namespace rocefs
