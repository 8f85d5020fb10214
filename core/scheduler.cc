#include "core/scheduler.h"

#include <algorithm>
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
  if (event.position_ == Event::kAtOnce) forget(event);
  Key key{due, sequence_++};
  event.due_ = due;
  if (!event.scheduled()) {
    if (std::exchange(root_vacant_, false)) return sift_down(0, key, &event);
    heap_.emplace_back();
    return sift_up(heap_.size() - 1, key, &event);
  }
  size_t position = static_cast<size_t>(event.position_);
  if (key.before(heap_[position].key)) {
    sift_up(position, key, &event);
  } else {
    sift_down(position, key, &event);
  }
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
  if (event.position_ != Event::kAtOnce) return remove(static_cast<size_t>(event.position_));
  event.position_ = Event::kUnscheduled;
  (event.previous_ ? event.previous_->next_ : first_at_once_) = event.next_;
  (event.next_ ? event.next_->previous_ : last_at_once_) = event.previous_;
}

bool Scheduler::run_one(TimeNs limit) {
  assert(!root_vacant_);
  TimeNs due = next();
  if (due > limit || due == kNever) return false;
  move_to(due);
  ++events_;
  Event* event = first_at_once_;
  if (!heap_.empty() && heap_[0].key.due <= now_) {
    event = heap_[0].event;
    event->position_ = Event::kUnscheduled;
    root_vacant_ = true;
  } else {
    event->position_ = Event::kUnscheduled;
    first_at_once_ = event->next_;
    (first_at_once_ ? first_at_once_->previous_ : last_at_once_) = nullptr;
  }
  event->handler_(event->owner_, now_);
  if (root_vacant_) fill_root();
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

void Scheduler::fill_root() {
  root_vacant_ = false;
  Key key = heap_.back().key;
  Event* event = heap_.back().event;
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0, key, event);
}

void Scheduler::place(size_t position, Key key, Event* event) {
  Entry& entry = heap_[position];
  entry.key = key;
  entry.event = event;
  event->position_ = static_cast<int64_t>(position);
}

void Scheduler::sift_up(size_t position, Key key, Event* event) {
  while (position > 0) {
    size_t parent = (position - 1) / kArity;
    if (!key.before(heap_[parent].key)) break;
    place(position, heap_[parent].key, heap_[parent].event);
    position = parent;
  }
  place(position, key, event);
}

// There is one.
size_t Scheduler::least_child(size_t position) const {
  size_t begin = position * kArity + 1;
  const Entry* first = &heap_[begin];
  size_t count = std::min(kArity, heap_.size() - begin);
  if (count == kArity) {
    size_t left = first[1].key.before(first[0].key) ? 1 : 0;
    size_t right = first[3].key.before(first[2].key) ? 3 : 2;
    return begin + (first[right].key.before(first[left].key) ? right : left);
  }
  size_t least = 0;
  for (size_t i = 1; i < count; ++i) least = first[i].key.before(first[least].key) ? i : least;
  return begin + least;
}

void Scheduler::sift_down(size_t position, Key key, Event* event) {
  while (position * kArity + 1 < heap_.size()) {
    size_t least = least_child(position);
    if (!heap_[least].key.before(key)) break;
    place(position, heap_[least].key, heap_[least].event);
    position = least;
  }
  place(position, key, event);
}

void Scheduler::remove(size_t position) {
  heap_[position].event->position_ = Event::kUnscheduled;
  Key key = heap_.back().key;
  Event* event = heap_.back().event;
  heap_.pop_back();
  if (position == heap_.size()) return;
  if (position > 0 && key.before(heap_[(position - 1) / kArity].key)) {
    sift_up(position, key, event);
  } else {
    sift_down(position, key, event);
  }
}

}  // namespace rocefs
