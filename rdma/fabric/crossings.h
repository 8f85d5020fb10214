// Crossings: what the links from one region of a fabric to another transmit in a window, in that
// order. The sending region adds, the receiving one takes what was added in windows before.
//
// LinkSides: what belongs to the transmitter's region of a link, and to that of its far end; the
// same object for all links between the same two.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/loop/scheduler.h"
#include "rdma/fabric/pause_frames.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/trace_hash.h"

namespace rocefs {

class Link;

struct Crossing {
  Link* link;
  PacketPtr packet;  // null: `pause`
  TimeNs arrival;    // of the packet
  PauseFrame pause;
};

class Crossings {
 public:
  Crossings() = default;
  Crossings(const Crossings&) = delete;
  Crossings& operator=(const Crossings&) = delete;

  // Sending region.
  void add(Link& link, PacketPtr&& packet, TimeNs arrival) {
    first_ = std::min(first_, arrival);
    added_.push_back({&link, std::move(packet), arrival, {}});
  }
  void add(Link& link, const PauseFrame& pause) {
    first_ = std::min(first_, pause.arrival);
    added_.push_back({&link, nullptr, 0, pause});
  }
  bool empty() const { return added_.empty(); }

  // Alone: what was added can be taken; returns when the first of it is due.
  TimeNs hand_over() {
    handed_.swap(added_);
    return std::exchange(first_, kNever);
  }

  // Receiving region: gives each to `take`.
  template <class Take>
  void take(Take take) {
    for (Crossing& one : handed_) take(one);
    handed_.clear();
  }

 private:
  alignas(64) std::vector<Crossing> added_;
  TimeNs first_ = kNever;
  alignas(64) std::vector<Crossing> handed_;
};

struct LinkSides {
  Scheduler& scheduler;  // of the transmitter
  TraceHash& trace;
  Scheduler& far_scheduler;
  TraceHash& far_trace;
  Crossings* crossings = nullptr;  // null: both are in one region
};

}  // namespace rocefs
