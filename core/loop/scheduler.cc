#include "core/loop/scheduler.h"

#include <cassert>

namespace rocefs {

Event::~Event() {
  if (scheduled()) scheduler_->cancel(*this);
}

void Scheduler::at(Event& event, TimeNs due) {
  assert(!event.scheduler_ || event.scheduler_ == this);
  event.scheduler_ = this;
  if (due <= now_) return at_once(event);
  if (event.position_ == Event::kAtOnce) forget(event);
  EventHeap::Key key{due, sequence_++};
  event.due_ = due;
  bool far = due - now_ > kSoon;
  if (event.scheduled()) {
    if (far == event.is_far_) return heap_of(event).move(event, key);
    heap_of(event).remove(event);
  }
  event.is_far_ = far;
  heap_of(event).insert(event, key);
}

void Scheduler::cancel(Event& event) {
  if (event.scheduled()) forget(event);
}

void Scheduler::at_once(Event& event) {
  if (event.scheduled()) forget(event);
  event.due_ = now_;
  event.position_ = Event::kAtOnce;
  event.next_ = nullptr;
  event.previous_ = last_at_once_;
  (last_at_once_ ? last_at_once_->next_ : first_at_once_) = &event;
  last_at_once_ = &event;
}

void Scheduler::forget(Event& event) {
  if (event.position_ != Event::kAtOnce) return heap_of(event).remove(event);
  event.position_ = Event::kUnscheduled;
  (event.previous_ ? event.previous_->next_ : first_at_once_) = event.next_;
  (event.next_ ? event.next_->previous_ : last_at_once_) = event.previous_;
}

bool Scheduler::run_one(TimeNs limit) {
  bool is_far = far_.due() <= near_.due() && far_.first().before(near_.first());
  TimeNs later = is_far ? far_.due() : near_.due();
  TimeNs due = first_at_once_ ? now_ : later;
  if (due > limit || due == kNever) return false;
  move_to(due);
  ++events_;
  if (later <= now_) {
    EventHeap& heap = is_far ? far_ : near_;
    Event& event = heap.take_first();
    event.handler_(event.owner_, now_);
    heap.settle();
    return true;
  }
  Event& event = *first_at_once_;
  event.position_ = Event::kUnscheduled;
  first_at_once_ = event.next_;
  (first_at_once_ ? first_at_once_->previous_ : last_at_once_) = nullptr;
  event.handler_(event.owner_, now_);
  return true;
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
