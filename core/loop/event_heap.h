// EventHeap: events that are due later, the first of them at hand. A heap of four children each.
//
// A scheduler's alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class Event;

class EventHeap {
 public:
  // Compared as one number, so that comparing takes no branch: those of a heap cannot be predicted.
  // Small enough to be passed in registers.
  struct Key {
    TimeNs due;
    uint64_t sequence;
    bool before(const Key& other) const { return wide() < other.wide(); }

   private:
    __extension__ using Wide = unsigned __int128;
    Wide wide() const { return Wide{static_cast<uint64_t>(due)} << 64 | sequence; }
  };

  // The first one's, due at kNever if there is none. Neither between take_first() and settle().
  TimeNs due() const { return entries_.empty() ? kNever : entries_[0].key.due; }
  Key first() const { return entries_.empty() ? Key{kNever, 0} : entries_[0].key; }
  void insert(Event& event, Key key);
  // Of one that it holds.
  void move(Event& event, Key key);
  void remove(Event& event);
  // There is one. Its place stays vacant: what is inserted next, mostly itself, takes it, and the
  // heap is put in order once instead of twice.
  Event& take_first();
  // No place is vacant any more.
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
  bool vacant_ = false;  // the root, whose entry still stands there
};

}  // namespace rocefs
