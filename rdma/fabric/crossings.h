// Crossings: what links transmit from one part of a fabric to another, which is run beside it:
// between two regions (rdma/fabric/region_crossings.h) or two packet cores
// (rdma/fabric/core_crossings.h).
//
// LinkSides: what belongs to the transmitter's part of a link, and to that of its far end; the same
// object for all links between the same two.
#pragma once

#include "core/base/time.h"
#include "core/loop/scheduler.h"
#include "rdma/fabric/pause_frames.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/trace_hash.h"

namespace rocefs {

class Link;

class Crossings {
 public:
  virtual ~Crossings() = default;

  // Sending part, or alone. `arrival`: at the far end of the link.
  virtual void add(Link& link, PacketPtr&& packet, TimeNs arrival) = 0;
  virtual void add(Link& link, const PauseFrame& pause) = 0;

  // Alone: moves all packets of one link to `into`, and drops its PAUSE frames.
  virtual void take_of(const Link& link, PacketFifo& into) = 0;
  virtual void drop_pauses(const Link& link) = 0;
  // Alone: drops all.
  virtual void clear() = 0;
};

struct LinkSides {
  Scheduler& scheduler;  // of the transmitter
  TraceHash& trace;
  Scheduler& far_scheduler;
  TraceHash& far_trace;
  Crossings* crossings = nullptr;  // null: both are in one part
};

}  // namespace rocefs
