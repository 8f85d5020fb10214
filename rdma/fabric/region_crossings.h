// RegionCrossings: what the links from one region of a fabric to another transmit in a window, in
// that order. The sending region adds, the receiving one takes what was added in windows before.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/loop/regions.h"
#include "rdma/fabric/crossings.h"

namespace rocefs {

struct Crossing {
  Link* link;
  PacketPtr packet;  // null: `pause`
  TimeNs arrival;    // of the packet
  PauseFrame pause;
};

class RegionCrossings final : public Crossings {
 public:
  explicit RegionCrossings(Region& from) : from_(from) {}
  RegionCrossings(const RegionCrossings&) = delete;
  RegionCrossings& operator=(const RegionCrossings&) = delete;

  void add(Link& link, PacketPtr&& packet, TimeNs arrival) override {
    note(arrival);
    added_.push_back({&link, std::move(packet), arrival, {}});
  }
  void add(Link& link, const PauseFrame& pause) override {
    note(pause.arrival);
    added_.push_back({&link, nullptr, 0, pause});
  }

  // Alone: whether nothing was added since the last hand_over().
  bool empty() const { return added_.empty(); }

  // Lets all that was added be taken; returns when the first of it is due.
  TimeNs hand_over() {
    std::move(added_.begin(), added_.end(), std::back_inserter(handed_));
    added_.clear();
    return std::exchange(first_, kNever);
  }

  void take_of(const Link& link, PacketFifo& into) override {
    for (std::vector<Crossing>* list : {&handed_, &added_}) {
      for (Crossing& one : *list) {
        if (one.link == &link && one.packet) into.push(std::move(one.packet));
      }
    }
    drop_pauses(link);
  }
  // Packets that were taken leave null packets behind, which look like PAUSE frames.
  void drop_pauses(const Link& link) override {
    for (std::vector<Crossing>* list : {&handed_, &added_}) {
      std::erase_if(*list, [&](const Crossing& one) { return one.link == &link && !one.packet; });
    }
    first_ = kNever;
    for (const Crossing& one : added_) {
      first_ = std::min(first_, one.packet ? one.arrival : one.pause.arrival);
    }
  }
  void clear() override {
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

}  // namespace rocefs
