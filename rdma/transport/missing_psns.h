// MissingPsns: PSNs that are missing although packets beyond them have come, and when each of them
// is to be asked for. A hole is lost when more packets than the reorder window have come since it
// was seen, or after so long; asked for, it is asked for again when the answer does not come.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class MissingPsns {
 public:
  struct ReorderLimits {
    uint32_t packets = 0;   // that may overtake one
    TimeNs reorder_ns = 0;  // how long one may be overtaken
    TimeNs reply_ns = 0;    // how long an answer may take, until one has been timed
  };
  // A hole that was asked for so often is given up.
  static constexpr uint8_t kMaxTries = 8;

  bool empty() const { return gaps_.empty(); }
  // One more packet has come.
  void count_arrival() { ++arrivals_; }
  // PSNs from `begin` up to `end`, of which none is in a hole, are missing.
  void add(uint64_t begin, uint64_t end, TimeNs now, const ReorderLimits& reorder_limits);
  // They have come.
  void mark_received(uint64_t begin, uint64_t end, TimeNs now);
  // They are not wanted any more.
  void drop_before(uint64_t psn);
  // Calls `ask(begin, end, tries)` for each hole whose time has come; `tries` counts from 1.
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
  // When the next one is lost if nothing comes; kNever if there is none.
  TimeNs due() const { return due_; }
  // None is missing any more.
  void clear() {
    gaps_.clear();
    due_ = kNever;
  }
  // Nothing is known, of answers neither.
  void reset() { *this = {}; }

 private:
  struct Gap {
    uint64_t begin, end;
    uint64_t seen_at;  // of the arrivals
    TimeNs due;
    TimeNs asked_at;
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

  std::vector<Gap> gaps_;  // by PSN; they neither touch nor overlap unless seen apart
  uint64_t arrivals_ = 0;
  uint64_t seen_first_ = 0;  // of the holes not asked for: the least seen_at
  TimeNs due_ = kNever;
  TimeNs reply_ns_ = 0;  // smoothed; 0: not yet timed
};

}  // namespace rocefs
