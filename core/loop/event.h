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

  bool scheduled() const { return place_ != Place::kNone; }
  // When it is due; kNever if it is not scheduled.
  TimeNs due() const { return scheduled() ? due_ : kNever; }

 private:
  friend class Scheduler;
  friend class EventHeap;
  friend class EventWheel;
  // Queue of the scheduler in which the event is.
  enum class Place : uint8_t { kNone, kAtOnce, kWheel, kNear, kFar };

  void* owner_;
  Handler handler_;
  class Scheduler* scheduler_ = nullptr;
  TimeNs due_ = kNever;
  uint64_t sequence_ = 0;  // order among events due at the same time
  int32_t position_ = 0;   // in its heap
  Place place_ = Place::kNone;
  Event* next_ = nullptr;  // in the list of events due now, or of its slot in the wheel
  Event* previous_ = nullptr;
};

// An Event that calls `Method` of its owner with the time.
template <auto Method, class Owner>
Event event_of(Owner* owner) {
  return Event(owner, [](void* self, TimeNs now) { (static_cast<Owner*>(self)->*Method)(now); });
}

}  // namespace rocefs
