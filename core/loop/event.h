// Event: an occurrence at a time, kept by a scheduler.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

// Embedded in its owner; the scheduler refers to it. Scheduling it again moves it; destroying it
// removes it from the queue.
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
  friend class EventHeap;
  static constexpr int32_t kUnscheduled = -1, kAtOnce = -2;

  void* owner_;
  Handler handler_;
  class Scheduler* scheduler_ = nullptr;
  TimeNs due_ = kNever;
  int32_t position_ = kUnscheduled;  // in its heap, or kAtOnce
  bool is_far_ = false;              // in the heap of far events
  Event* next_ = nullptr;            // next in the list of events due now
  Event* previous_ = nullptr;
};

// An Event that calls `Method` of its owner with the time.
template <auto Method, class Owner>
Event event_of(Owner* owner) {
  return Event(owner, [](void* self, TimeNs now) { (static_cast<Owner*>(self)->*Method)(now); });
}

}  // namespace rocefs
