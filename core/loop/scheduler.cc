#include "core/loop/scheduler.h"

#include <cassert>
#include <utility>

namespace rocefs {

Event::~Event() {
  if (scheduled()) scheduler_->cancel(*this);
}

void Scheduler::at(Event& event, TimeNs due) {
  assert(!event.scheduler_ || event.scheduler_ == this);
  event.scheduler_ = this;
  if (due > now_ + EventWheel::kSpan) return wait(event, due);
  if (event.scheduled()) return move(event, due);
  insert(event, due);
}

// Puts an event that is due soon into the list of its time.
inline void Scheduler::insert(Event& event, TimeNs due) {
  if (due <= now_) return at_once(event);
  event.sequence_ = sequence_++;
  event.place_ = Event::Place::kWheel;
  wheel_.insert(event, due);
}

void Scheduler::move(Event& event, TimeNs due) {
  forget(event);
  insert(event, due);
}

// Puts the event into the heap for its time.
void Scheduler::wait(Event& event, TimeNs due) {
  event.sequence_ = sequence_++;
  const Event::Place place = due - now_ > kSoon ? Event::Place::kFar : Event::Place::kNear;
  const EventHeap::Key key{due, event.sequence_};
  if (event.place_ == place) {
    event.due_ = due;
    heap_of(place).move(event, key);
    return note_timers();
  }
  if (event.scheduled()) forget(event);
  event.due_ = due;
  event.place_ = place;
  heap_of(place).insert(event, key);
  note_timers();
}

void Scheduler::cancel(Event& event) {
  if (event.scheduled()) forget(event);
}

inline void Scheduler::at_once(Event& event) {
  event.due_ = now_;
  event.place_ = Event::Place::kAtOnce;
  event.next_ = nullptr;
  event.previous_ = last_at_once_;
  (last_at_once_ ? last_at_once_->next_ : first_at_once_) = &event;
  last_at_once_ = &event;
}

void Scheduler::forget(Event& event) {
  switch (std::exchange(event.place_, Event::Place::kNone)) {
    case Event::Place::kNone:
      return;
    case Event::Place::kWheel:
      lookahead_.forget(event);
      return wheel_.remove(event);
    case Event::Place::kNear:
      near_.remove(event);
      return note_timers();
    case Event::Place::kFar:
      far_.remove(event);
      return note_timers();
    case Event::Place::kAtOnce:
      (event.previous_ ? event.previous_->next_ : first_at_once_) = event.next_;
      (event.next_ ? event.next_->previous_ : last_at_once_) = event.previous_;
  }
}

bool Scheduler::run_one(TimeNs limit) {
  const TimeNs later = std::min(wheel_.due(), timers_due_);
  const TimeNs due = first_at_once_ ? now_ : later;
  if (due > limit || due == kNever) return false;
  move_to(due);
  ++events_;
  if (later > now_) {
    run_at_once();
  } else if (timers_due_ > later || wheel_is_first()) {
    run_wheel();
  } else {
    run_timer();
  }
  return true;
}

// Decides between a timer and an event of the wheel that are due at the same time.
bool Scheduler::wheel_is_first() const {
  return wheel_.due() == timers_due_ &&
         wheel_.first().sequence_ <
             (far_.first().before(near_.first()) ? far_ : near_).first().sequence;
}

void Scheduler::run_at_once() {
  Event& event = *first_at_once_;
  first_at_once_ = event.next_;
  if (!first_at_once_)
    last_at_once_ = nullptr;
  else
    first_at_once_->previous_ = nullptr;
  run(event);
}

void Scheduler::run_wheel() {
  lookahead_.advance(wheel_, wheel_.first());
  run(wheel_.take_first());
}

void Scheduler::run_timer() {
  EventHeap& heap = far_.first().before(near_.first()) ? far_ : near_;
  run(heap.take_first());
  heap.settle();
  note_timers();
}

void Scheduler::run(Event& event) {
  event.place_ = Event::Place::kNone;
  event.kind_.run(event.owner_, now_);
}

void Scheduler::run_until(TimeNs limit) {
  while (run_one(limit)) {
  }
  move_to(limit);
}

void Scheduler::pass(TimeNs now) {
  assert(now <= next());
  move_to(now);
}

}  // namespace rocefs
