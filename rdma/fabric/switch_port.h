// Port of a switch: an egress queue per priority, and an ingress count per priority of packets
// still in the switch. Any thread may read counters and gauges; all else belongs to the core's
// thread.
//
// The ports of a large fabric do not fit the caches, nor do their pages fit the CPU's table of
// pages: what every packet needs is in few lines close together, all else apart from it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "core/base/counter.h"
#include "rdma/fabric/link.h"
#include "rdma/fabric/priority_turn.h"
#include "rdma/fabric/queue_times.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/traffic_class.h"

namespace rocefs {

struct EgressCounters {
  Counter marked, dropped;
};
inline constexpr CounterRow<EgressCounters> kEgressCounters[] = {
    {"marked", &EgressCounters::marked, "packets that this queue marked as congested (CE)"},
    {"dropped", &EgressCounters::dropped, "packets for this queue that the switch had no room for"},
};

struct IngressCounters {
  Counter pause_sent;
};
inline constexpr CounterRow<IngressCounters> kIngressCounters[] = {
    {"pause_sent", &IngressCounters::pause_sent,
     "PAUSE frames by which the switch stopped the far end of this port's cable"},
};

struct CableCounters {
  Counter link_downed;
};
inline constexpr CounterRow<CableCounters> kCableCounters[] = {
    {"link_downed", &CableCounters::link_downed, "times that the port's link went down"},
};

// Packets that a switch dropped, by the room that they lacked.
struct RoomCounters {
  Counter pfc_headroom, ingress_buffer, switch_buffer, egress_buffer;
};
inline constexpr CounterRow<RoomCounters> kRoomCounters[] = {
    {"drops/pfc_headroom", &RoomCounters::pfc_headroom,
     "packets that came after PAUSE, and for which the headroom of their port was full"},
    {"drops/ingress_buffer", &RoomCounters::ingress_buffer,
     "packets dropped because the buffer of the link they came by was full"},
    {"drops/switch_buffer", &RoomCounters::switch_buffer,
     "packets dropped because the buffer of the switch was full"},
    {"drops/egress_buffer", &RoomCounters::egress_buffer,
     "packets dropped because the buffer of the link they were to leave by was full"},
};

// Queue of an egress port and priority, first in, first out. A cache line.
struct alignas(64) EgressQueue {
  PacketFifo fifo;
  Counter bytes, packets;  // queued now
  Counter peak;            // octets
  // While the switch measures its queues.
  OctetTimes* times = nullptr;  // null until the queue is used
  TimeNs since = 0;             // last change
  uint64_t longest = 0;         // octets
};

class Switch;

// Ingress of a port: two cache lines, side by side.
struct alignas(128) IngressPort final : LinkSink {
  Switch* owner = nullptr;
  Link* link = nullptr;
  Counter bytes;  // stored anywhere in the switch, all priorities
  Counter peak;
  uint64_t limit = 0;  // by the link's present parameters
  uint16_t index = 0;
  uint8_t pausing = 0;                                     // priorities for which PAUSE was sent
  alignas(64) std::array<uint64_t, kPriorities> stored{};  // octets anywhere in the switch

  void receive(Packet* packet, TimeNs now) override;
  void prefetch(const Packet& packet, int step) const override;
};

// Egress of a port: a cache line. Its queues are the switch's.
struct alignas(64) EgressPort final : LinkSource {
  Switch* owner = nullptr;
  Link* link = nullptr;
  // Octets that may still be queued; below 0 if the limit was lowered.
  int64_t room = 0;
  // A packet of one of the queues, most likely the next to be transmitted: to be asked for early.
  const Packet* first = nullptr;
  PriorityTurn turn;
  uint8_t waiting = 0;  // priorities with queued packets
  bool awake = false;   // the link pulls again, and need not be kicked
  uint16_t index = 0;

  Packet* pull(TimeNs now) override;
  bool ready() override { return awake = (waiting & ~link->paused()) != 0; }
  void prefetch(int step) const override;
};
static_assert(sizeof(IngressPort) == 128 && sizeof(EgressPort) == 64);

// Fields of a port that few packets need.
struct PortRest {
  uint64_t queued_limit = 0;  // by the link's present parameters
  uint64_t headroom = 0;      // octets per priority
  bool headroom_short = false;
  uint64_t headroom_needed = 0, headroom_built = 0;  // by the links' present and initial parameters
  // Octets within threshold and headroom, of each priority, while PAUSE was sent.
  std::array<uint64_t, kPriorities> paused_limits{};
  // When packets of each priority can arrive no more that were sent before that PAUSE did.
  std::array<TimeNs, kPriorities> pause_obeyed{};
  std::array<IngressCounters, kPriorities> ingress_counters;
  std::array<EgressCounters, kPriorities> egress_counters;
  CableCounters cable_counters;
  bool was_up = true;  // link_up() at the latest note_link()
};

struct SwitchPort {
  IngressPort ingress;
  EgressPort egress;
  PortRest* rest = nullptr;

  // Whether both directions of the cable work.
  bool link_up() const { return egress.link->up() && ingress.link->up(); }
  // A direction of the cable has gone up or down.
  void note_link() {
    ingress.pausing = 0;  // the link has lost the state of PFC
    const bool up = link_up();
    if (std::exchange(rest->was_up, up) != up && !up) rest->cable_counters.link_downed.add();
  }
};

}  // namespace rocefs
