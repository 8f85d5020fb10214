// Scheduler: the one discrete-event queue behind both clocks. Events are totally ordered by time
// and, within one time, by the order in which they were scheduled.
//
// Owned by the packet core's thread; it starts no thread and reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace rocefs {

// An occurrence that its owner embeds and the scheduler refers to. Scheduling it again moves it.
// It leaves the queue when it is destroyed.
class Event {
 public:
  using Handler = void (*)(void* owner, TimeNs now);
  Event(void* owner, Handler handler) : owner_(owner), handler_(handler) {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool scheduled() const { return position_ != kUnscheduled; }
  // When it is due; kNever if it is not scheduled.
  TimeNs due() const { return scheduled() ? due_ : kNever; }

 private:
  friend class Scheduler;
  static constexpr int64_t kUnscheduled = -1, kAtOnce = -2;

  void* owner_;
  Handler handler_;
  class Scheduler* scheduler_ = nullptr;
  TimeNs due_ = kNever;
  int64_t position_ = kUnscheduled;  // in the heap, or kAtOnce
  Event* next_ = nullptr;            // of those that are due at once
  Event* previous_ = nullptr;
};

// An Event that calls `Method` of its owner with the time.
template <auto Method, class Owner>
Event event_of(Owner* owner) {
  return Event(owner, [](void* self, TimeNs now) { (static_cast<Owner*>(self)->*Method)(now); });
}

class Scheduler {
 public:
  // The time of the running event, or that up to which time has passed.
  TimeNs now() const { return now_; }
  // Where in the run that is: how many events of this instant have begun.
  Moment moment() const { return {now_, events_}; }
  // When the next event is due; kNever if there is none. Not from within an event.
  TimeNs next() const {
    if (first_at_once_) return now_;
    return heap_.empty() ? kNever : heap_[0].key.due;
  }

  // A time in the past means now.
  void at(Event& event, TimeNs due);
  void after(Event& event, TimeNs delay) { at(event, now_ + delay); }
  void cancel(Event& event);

  // Runs the next event if it is due by `limit`; now() becomes its time. False if none is.
  bool run_one(TimeNs limit);
  // Runs every event that is due by `limit`, then lets time pass up to it.
  void run_until(TimeNs limit);
  // Lets time pass up to `now`, which may not be later than next().
  void pass(TimeNs now);

 private:
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
  struct Entry {
    Key key;
    Event* event;
  };
  static constexpr size_t kArity = 4;

  void at_once(Event& event);
  void forget(Event& event);
  void place(size_t position, Key key, Event* event);
  void sift_up(size_t position, Key key, Event* event);
  void sift_down(size_t position, Key key, Event* event);
  size_t least_child(size_t position) const;
  void remove(size_t position);
  void fill_root();
  void move_to(TimeNs now) {
    if (now > now_) events_ = 0;
    now_ = std::max(now_, now);
  }

  // What is due at once, first in, first out: half of all events are, and need no heap. What the
  // heap holds for this instant goes before them: it was scheduled before the instant came.
  Event* first_at_once_ = nullptr;
  Event* last_at_once_ = nullptr;
  std::vector<Entry> heap_;
  // The running event's entry still stands at the root: what it schedules, mostly itself, takes
  // that place, and the heap is put in order once instead of twice.
  bool root_vacant_ = false;
  TimeNs now_ = 0;
  uint64_t events_ = 0;  // of this instant
  uint64_t sequence_ = 0;
};

}  // namespace rocefs
