// Scheduler: the one discrete-event queue behind both clocks. Events are totally ordered by time
// and, within one time, by the order in which they were scheduled.
//
// Owned by the packet core's thread; it starts no thread and reads no clock.
#pragma once

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

  bool scheduled() const { return position_ >= 0; }
  // When it is due; kNever if it is not scheduled.
  TimeNs due() const { return scheduled() ? due_ : kNever; }

 private:
  friend class Scheduler;
  void* owner_;
  Handler handler_;
  class Scheduler* scheduler_ = nullptr;
  TimeNs due_ = kNever;
  int64_t position_ = -1;  // in the heap
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
  // When the next event is due; kNever if there is none.
  TimeNs next() const { return heap_.empty() ? kNever : heap_[0].due; }

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
  struct Entry {
    TimeNs due;
    uint64_t sequence;
    Event* event;
    bool before(const Entry& other) const {
      return due != other.due ? due < other.due : sequence < other.sequence;
    }
  };
  static constexpr size_t kArity = 4;

  void place(size_t position, const Entry& entry);
  void sift_up(size_t position, Entry entry);
  void sift_down(size_t position, Entry entry);
  void remove(size_t position);

  std::vector<Entry> heap_;
  TimeNs now_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace rocefs
