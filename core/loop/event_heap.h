// EventHeap: priority queue of events, a 4-ary heap. Part of a scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class Event;

class EventHeap {
 public:
  // Compared as one number without a branch: comparisons in a heap are unpredictable. Small enough
  // to be passed in registers.
  struct Key {
    TimeNs due;
    uint64_t sequence;
    bool before(const Key& other) const { return wide() < other.wide(); }

   private:
    __extension__ using Wide = unsigned __int128;
    Wide wide() const { return Wide{static_cast<uint64_t>(due)} << 64 | sequence; }
  };

  // Due time of the first event; kNever if the heap is empty. Not between take_first() and
  // settle().
  TimeNs due() const { return entries_.empty() ? kNever : entries_[0].key.due; }
  Key first() const { return entries_.empty() ? Key{kNever, 0} : entries_[0].key; }
  void insert(Event& event, Key key);
  // The heap must hold `event`.
  void move(Event& event, Key key);
  void remove(Event& event);
  // The heap must not be empty. The root stays vacant: the next insertion, usually of the same
  // event, fills it, and the heap is sifted once instead of twice.
  Event& take_first();
  // Fills a vacant root.
  void settle() {
    if (vacant_) fill();
  }

 private:
  struct Entry {
    Key key;
    Event* event;
  };
  static constexpr size_t kArity = 4;

  void place(size_t position, Key key, Event* event);
  void sift_up(size_t position, Key key, Event* event);
  void sift_down(size_t position, Key key, Event* event);
  size_t least_child(size_t position) const;
  void fill();

  std::vector<Entry> entries_;
  bool vacant_ = false;  // the root is vacant; its old entry still stands there
};

}  // namespace rocefs
