// Port of a switch: an egress queue per priority, and an ingress count per priority of packets
// still in the switch. Any thread may read counters and gauges; all else belongs to the core's
// thread.
#pragma once

#include <array>
#include <cstdint>

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

// Count of an ingress port and priority.
struct IngressCount {
  uint64_t bytes = 0;    // stored anywhere in the switch
  bool pausing = false;  // PAUSE was sent
  uint64_t limit = 0;    // while pausing: octets within threshold and headroom
  IngressCounters counters;
};

class Switch;

// Fields that every packet needs come first, in two cache lines; its queue is another one.
struct SwitchPort : LinkSource, LinkSink {
  Link* in = nullptr;
  Link* out = nullptr;
  Switch* owner = nullptr;
  uint64_t queued_bytes = 0;  // in all queues
  Counter ingress_bytes;      // stored anywhere in the switch, all priorities
  uint16_t index = 0;
  uint8_t waiting = 0;  // priorities with queued packets
  // Limits by the links' present parameters.
  uint64_t queued_limit = 0, ingress_limit = 0;
  Counter ingress_peak;
  // A packet of one of the queues, most likely the next to be transmitted: to be asked for early.
  const Packet* first = nullptr;
  PriorityTurn turn;
  uint64_t headroom = 0;  // octets per priority
  bool headroom_short = false;
  uint64_t headroom_needed = 0, headroom_built = 0;  // by the links' present and initial parameters
  std::array<EgressQueue, kPriorities> queues;
  std::array<EgressCounters, kPriorities> egress_counters;
  std::array<IngressCount, kPriorities> ingress;
};

}  // namespace rocefs
