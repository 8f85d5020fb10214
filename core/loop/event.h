// Event: an occurrence at a time, kept by a scheduler.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

// Embedded in its owner; the scheduler refers to it. Scheduling it again moves it; destroying it
// removes it from the queue.
class alignas(64) Event {
 public:
  // Calls of its owner.
  struct Kind {
    void (*run)(void* owner, TimeNs now);
    // Asks the CPU for memory that `run` will read; changes nothing. Called for steps from 0 to 3,
    // while other events run in between: a step reads what those before it asked for. Some or all
    // may be left out. Null: nothing.
    void (*prefetch)(const void* owner, int step);
  };
  // `kind` outlives the event.
  Event(void* owner, const Kind& kind) : owner_(owner), kind_(kind) {}
  Event(void* owner, const Kind&& kind) = delete;
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
  friend class Lookahead;
  // Queue of the scheduler in which the event is.
  enum class Place : uint8_t { kNone, kAtOnce, kWheel, kNear, kFar };

  void* owner_;
  const Kind& kind_;
  class Scheduler* scheduler_ = nullptr;
  TimeNs due_ = kNever;
  uint64_t sequence_ = 0;  // order among events due at the same time
  int32_t position_ = 0;   // in its heap
  Place place_ = Place::kNone;
  Event* next_ = nullptr;  // in the list of events due now, or of its slot in the wheel
  Event* previous_ = nullptr;
};

// An Event that calls `Method` of its owner with the time, and `Prefetch`, if there is one, ahead
// of it.
template <auto Method, auto Prefetch = nullptr, class Owner>
Event event_of(Owner* owner) {
  static constexpr Event::Kind kKind = [] {
    Event::Kind kind{[](void* self, TimeNs now) { (static_cast<Owner*>(self)->*Method)(now); },
                     nullptr};
    if constexpr (Prefetch != nullptr) {
      kind.prefetch = [](const void* self, int step) {
        (static_cast<const Owner*>(self)->*Prefetch)(step);
      };
    }
    return kind;
  }();
  return Event(owner, kKind);
}

}  // namespace rocefs
