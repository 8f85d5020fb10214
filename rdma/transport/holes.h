// Holes: PSNs that are missing although packets beyond them have come, and when each of them is to
// be asked for. A hole is lost when more packets than the reorder window have come since it was
// seen, or after so long; asked for, it is asked for again when the answer does not come.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class Holes {
 public:
  struct Patience {
    uint32_t packets = 0;     // that may overtake one
    TimeNs overtaken_ns = 0;  // how long one may be overtaken
    TimeNs answer_ns = 0;     // how long an answer may take, until one has been timed
  };
  // A hole that was asked for so often is given up.
  static constexpr uint8_t kMostTries = 8;

  bool empty() const { return holes_.empty(); }
  // One more packet has come.
  void count_arrival() { ++arrivals_; }
  // PSNs from `begin` up to `end`, of which none is in a hole, are missing.
  void note(uint64_t begin, uint64_t end, TimeNs now, const Patience& patience);
  // They have come.
  void fill(uint64_t begin, uint64_t end, TimeNs now);
  // They are not wanted any more.
  void forget_before(uint64_t psn);
  // Calls `ask(begin, end, tries)` for each hole whose time has come; `tries` counts from 1.
  template <class Ask>
  void ask_for_lost(TimeNs now, const Patience& patience, Ask ask) {
    if (!may_be_lost(now, patience)) return;
    for (Hole& hole : holes_) {
      if (!is_lost(hole, now, patience)) continue;
      set_asked(hole, now, patience);
      ask(hole.begin, hole.end, hole.tries);
    }
    look_ahead();
  }
  // When the next one is lost if nothing comes; kNever if there is none.
  TimeNs due() const { return due_; }
  // None is missing any more.
  void clear() {
    holes_.clear();
    due_ = kNever;
  }
  // Nothing is known, of answers neither.
  void reset() { *this = {}; }

 private:
  struct Hole {
    uint64_t begin, end;
    uint64_t seen_at;  // of the arrivals
    TimeNs due;
    TimeNs asked_at;
    uint8_t tries;
  };

  bool may_be_lost(TimeNs now, const Patience& patience) const {
    return !holes_.empty() && (now >= due_ || arrivals_ - seen_first_ > patience.packets);
  }
  bool is_lost(const Hole& hole, TimeNs now, const Patience& patience) const {
    return now >= hole.due || (hole.tries == 0 && arrivals_ - hole.seen_at > patience.packets);
  }
  void set_asked(Hole& hole, TimeNs now, const Patience& patience);
  void look_ahead();

  std::vector<Hole> holes_;  // by PSN; they neither touch nor overlap unless seen apart
  uint64_t arrivals_ = 0;
  uint64_t seen_first_ = 0;  // of the holes not asked for: the least seen_at
  TimeNs due_ = kNever;
  TimeNs answer_ns_ = 0;  // smoothed; 0: not yet timed
};

}  // namespace rocefs
