// Scheduler: the one discrete-event queue behind both clocks. Events are totally ordered by time
// and, within one time, by the order in which they were scheduled.
//
// Owned by the packet core's thread; it starts no thread and reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"
#include "core/loop/event.h"
#include "core/loop/event_heap.h"

namespace rocefs {

class Scheduler {
 public:
  // The time of the running event, or that up to which time has passed.
  TimeNs now() const { return now_; }
  // Where in the run that is: how many events of this instant have begun.
  Moment moment() const { return {now_, events_}; }
  // When the next event is due; kNever if there is none. Not from within an event.
  TimeNs next() const {
    if (first_at_once_) return now_;
    return std::min(near_.due(), far_.due());
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
  void at_once(Event& event);
  void forget(Event& event);
  EventHeap& heap_of(const Event& event) { return event.is_far_ ? far_ : near_; }
  void move_to(TimeNs now) {
    if (now > now_) events_ = 0;
    now_ = std::max(now_, now);
  }

  // What is due at once, first in, first out: half of all events are, and need no heap. What a heap
  // holds for this instant goes before them: it was scheduled before the instant came.
  Event* first_at_once_ = nullptr;
  Event* last_at_once_ = nullptr;
  // What moves packets is due soon. Timers, one or more for each queue pair, wait apart: most are
  // put off again and again before they are due, and the heap that every packet goes through stays
  // small. Links, pacing and the switch are below that, time-outs of queue pairs above.
  static constexpr TimeNs kSoon = kMillisecond;
  EventHeap near_, far_;
  TimeNs now_ = 0;
  uint64_t events_ = 0;  // of this instant
  uint64_t sequence_ = 0;
};

}  // namespace rocefs
