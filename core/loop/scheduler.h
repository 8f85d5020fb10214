// Scheduler: the one discrete-event queue behind both clocks. Events are totally ordered by time
// and, within one time, by the order in which they were scheduled.
//
// Owned by the packet core's thread; it starts no thread and reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/time.h"
#include "core/loop/event.h"
#include "core/loop/event_heap.h"
#include "core/loop/event_wheel.h"
#include "core/loop/lookahead.h"

namespace rocefs {

class Scheduler {
 public:
  // Time of the running event, or the time that has passed.
  TimeNs now() const { return now_; }
  // Position in the run: the number of events begun at this instant.
  Moment moment() const { return {now_, events_}; }
  // Number of events begun in the whole run.
  uint64_t events_run() const { return past_events_ + events_; }
  // Due time of the next event; kNever if there is none. Not from within an event.
  TimeNs next() const {
    if (first_at_once_) return now_;
    return std::min(wheel_.due(), timers_due_);
  }

  // A time in the past means now.
  void at(Event& event, TimeNs due);
  void after(Event& event, TimeNs delay) { at(event, now_ + delay); }
  void cancel(Event& event);

  // Runs the next event if it is due by `limit`; now() becomes its time. False if none is.
  bool run_one(TimeNs limit);
  // Runs every event that is due by `limit`, then lets time pass up to it.
  void run_until(TimeNs limit);
  // Lets time pass up to `now`, which must not be later than next().
  void pass(TimeNs now);

 private:
  void insert(Event& event, TimeNs due);
  void at_once(Event& event);
  // Not inlined, so that at() has no registers to save.
  [[gnu::noinline]] void wait(Event& event, TimeNs due);
  [[gnu::noinline]] void move(Event& event, TimeNs due);
  void forget(Event& event);
  bool wheel_is_first() const;
  void run_at_once();
  void run_wheel();
  void run_timer();
  void run(Event& event);
  void note_timers() { timers_due_ = std::min(near_.due(), far_.due()); }
  EventHeap& heap_of(Event::Place place) { return place == Event::Place::kFar ? far_ : near_; }
  void move_to(TimeNs now) {
    if (now > now_) past_events_ += std::exchange(events_, 0);
    now_ = std::max(now_, now);
  }

  // Events due now, first in, first out: half of all events. Events in another queue for this
  // instant go first: they were scheduled earlier.
  Event* first_at_once_ = nullptr;
  Event* last_at_once_ = nullptr;
  // Events of packets are due soon: they are in the wheel but for those of slow or long cables,
  // which are in a heap. Timers, one or more per queue pair, wait in a heap of their own: most are
  // moved again and again before they are due. Links, pacing and switches are below this limit,
  // time-outs of queue pairs above.
  static constexpr TimeNs kSoon = kMillisecond;
  EventWheel wheel_;
  Lookahead lookahead_;
  EventHeap near_, far_;
  TimeNs timers_due_ = kNever;  // of the first event in the heaps, but not while it runs
  TimeNs now_ = 0;
  uint64_t events_ = 0;       // events begun at now_
  uint64_t past_events_ = 0;  // events begun before
  uint64_t sequence_ = 0;
};

}  // namespace rocefs
