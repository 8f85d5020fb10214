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
  if (due <= now_) return at_once(event);
  event.sequence_ = sequence_++;
  const TimeNs ahead = due - now_;
  if (ahead <= EventWheel::kSpan) {
    if (event.scheduled()) forget(event);
    event.place_ = Event::Place::kWheel;
    return wheel_.insert(event, due);
  }
  const Event::Place place = ahead > kSoon ? Event::Place::kFar : Event::Place::kNear;
  const EventHeap::Key key{due, event.sequence_};
  if (event.place_ == place) {
    event.due_ = due;
    return heap_of(place).move(event, key);
  }
  if (event.scheduled()) forget(event);
  event.due_ = due;
  event.place_ = place;
  heap_of(place).insert(event, key);
}

void Scheduler::cancel(Event& event) {
  if (event.scheduled()) forget(event);
}

void Scheduler::at_once(Event& event) {
  if (event.scheduled()) forget(event);
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
      return wheel_.remove(event);
    case Event::Place::kNear:
      return near_.remove(event);
    case Event::Place::kFar:
      return far_.remove(event);
    case Event::Place::kAtOnce:
      (event.previous_ ? event.previous_->next_ : first_at_once_) = event.next_;
      (event.next_ ? event.next_->previous_ : last_at_once_) = event.previous_;
  }
}

bool Scheduler::run_one(TimeNs limit) {
  const bool far = far_.due() <= near_.due() && far_.first().before(near_.first());
  EventHeap& heap = far ? far_ : near_;
  const TimeNs later = std::min(wheel_.due(), heap.due());
  const TimeNs due = first_at_once_ ? now_ : later;
  if (due > limit || due == kNever) return false;
  move_to(due);
  ++events_;
  if (later > now_) {
    run(*first_at_once_);
  } else if (heap.due() > later ||
             (wheel_.due() == later && wheel_.first().sequence_ < heap.first().sequence)) {
    run(wheel_.first());
  } else {
    Event& event = heap.take_first();
    event.place_ = Event::Place::kNone;
    event.handler_(event.owner_, now_);
    heap.settle();
  }
  return true;
}

void Scheduler::run(Event& event) {
  forget(event);
  event.handler_(event.owner_, now_);
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
