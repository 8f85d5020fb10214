// Crossings: what the links from one region of a fabric to another transmit in a window, in that
// order. The sending region adds, the receiving one takes what was added in windows before.
//
// LinkSides: what belongs to the transmitter's region of a link, and to that of its far end; the
// same object for all links between the same two.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/loop/regions.h"
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
  explicit Crossings(Region& from) : from_(from) {}
  Crossings(const Crossings&) = delete;
  Crossings& operator=(const Crossings&) = delete;

  // Sending region, or alone.
  void add(Link& link, PacketPtr&& packet, TimeNs arrival) {
    note(arrival);
    added_.push_back({&link, std::move(packet), arrival, {}});
  }
  void add(Link& link, const PauseFrame& pause) {
    note(pause.arrival);
    added_.push_back({&link, nullptr, 0, pause});
  }

  // Alone, as what follows but take(): whether nothing was added since the last hand_over().
  bool empty() const { return added_.empty(); }

  // Lets all that was added be taken; returns when the first of it is due.
  TimeNs hand_over() {
    std::move(added_.begin(), added_.end(), std::back_inserter(handed_));
    added_.clear();
    return std::exchange(first_, kNever);
  }

  // Gives all packets of one link to `take`; drops its PAUSE frames.
  template <class Take>
  void take_of(const Link& link, Take take) {
    for (std::vector<Crossing>* list : {&handed_, &added_}) {
      for (Crossing& one : *list) {
        if (one.link == &link && one.packet) take(std::move(one.packet));
      }
    }
    drop_pauses(link);
  }
  void drop_pauses(const Link& link) {
    for (std::vector<Crossing>* list : {&handed_, &added_}) {
      std::erase_if(*list, [&](const Crossing& one) { return one.link == &link && !one.packet; });
    }
    first_ = kNever;
    for (const Crossing& one : added_) {
      first_ = std::min(first_, one.packet ? one.arrival : one.pause.arrival);
    }
  }
  void clear() {
    added_.clear();
    handed_.clear();
    first_ = kNever;
  }

  // Receiving region: gives each to `take`.
  template <class Take>
  void take(Take take) {
    for (Crossing& one : handed_) take(one);
    handed_.clear();
  }

 private:
  void note(TimeNs due) {
    if (added_.empty()) from_.note_sent();
    first_ = std::min(first_, due);
  }

  Region& from_;
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
