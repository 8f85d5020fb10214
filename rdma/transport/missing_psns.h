// MissingPsns: PSNs that are missing although packets beyond them have come, and the time to ask
// for each. A hole is lost when more packets than the reorder window have come since it was seen,
// or when the reorder time is over. What was asked for is asked for again when no reply, or no
// further part of it, comes in time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class MissingPsns {
 public:
  struct ReorderLimits {
    uint32_t packets = 0;   // packets that may overtake one
    TimeNs reorder_ns = 0;  // time for which a packet may be overtaken
    TimeNs reply_ns = 0;    // time that a reply may take, until one has been timed
  };
  // Tries after which a hole is given up, none of which has brought any missing packet.
  static constexpr uint8_t kMaxTries = 8;

  bool empty() const { return gaps_.empty(); }
  // Counts one more packet that has come.
  void count_arrival() { ++arrivals_; }
  // Adds the missing PSNs from `begin` up to `end`, none of which is in a hole yet.
  void add(uint64_t begin, uint64_t end, TimeNs now, const ReorderLimits& reorder_limits);
  // Takes received PSNs out of the holes.
  void mark_received(uint64_t begin, uint64_t end, TimeNs now);
  // Drops the PSNs before `psn`, which are no longer wanted.
  void drop_before(uint64_t psn);
  // Calls `ask(begin, end, tries)` for each hole that is lost or whose reply is late. `tries`
  // counts those since any missing packet came, from 1.
  template <class Ask>
  void nak_due(TimeNs now, const ReorderLimits& reorder_limits, Ask ask) {
    if (!may_be_lost(now, reorder_limits)) return;
    for (Gap& gap : gaps_) {
      if (!is_lost(gap, now, reorder_limits)) continue;
      set_asked(gap, now, reorder_limits);
      ask(gap.begin, gap.end, gap.tries);
    }
    find_next_due();
  }
  // Time at which the next hole is lost if no packet comes; kNever without holes.
  TimeNs due() const { return due_; }
  // Drops all holes.
  void clear() {
    gaps_.clear();
    due_ = kNever;
  }
  // Drops all state, the measured reply time too.
  void reset() { *this = {}; }

 private:
  struct Gap {
    uint64_t begin, end;
    uint64_t seen_at;  // value of arrivals_
    TimeNs due;
    TimeNs asked_at;   // time of the first try
    TimeNs wait;       // for the reply to the last one
    uint64_t repairs;  // value of repairs_ at the last try
    uint8_t tries;
  };

  bool may_be_lost(TimeNs now, const ReorderLimits& reorder_limits) const {
    return !gaps_.empty() && (now >= due_ || arrivals_ - seen_first_ > reorder_limits.packets);
  }
  bool is_lost(const Gap& gap, TimeNs now, const ReorderLimits& reorder_limits) const {
    return now >= gap.due || (gap.tries == 0 && arrivals_ - gap.seen_at > reorder_limits.packets);
  }
  void set_asked(Gap& gap, TimeNs now, const ReorderLimits& reorder_limits);
  void find_next_due();

  std::vector<Gap> gaps_;  // sorted by PSN; holes touch only if seen apart
  uint64_t arrivals_ = 0;
  uint64_t seen_first_ = 0;  // least seen_at of the holes not asked for
  uint64_t repairs_ = 0;     // replies that have come
  TimeNs due_ = kNever;
  TimeNs reply_ns_ = 0;  // smoothed reply time; 0: not yet timed
};

}  // namespace rocefs
