#include "core/scheduler.h"

#include <algorithm>
#include <cassert>

namespace rocefs {

Event::~Event() {
  if (scheduled()) scheduler_->cancel(*this);
}

void Scheduler::at(Event& event, TimeNs due) {
  assert(!event.scheduler_ || event.scheduler_ == this);
  event.scheduler_ = this;
  Entry entry{std::max(due, now_), sequence_++, &event};
  event.due_ = entry.due;
  if (!event.scheduled()) {
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
    return;
  }
  size_t position = static_cast<size_t>(event.position_);
  if (entry.before(heap_[position])) {
    sift_up(position, entry);
  } else {
    sift_down(position, entry);
  }
}

void Scheduler::cancel(Event& event) {
  if (event.scheduled()) remove(static_cast<size_t>(event.position_));
}

bool Scheduler::run_one(TimeNs limit) {
  if (heap_.empty() || heap_[0].due > limit) return false;
  Event* event = heap_[0].event;
  now_ = heap_[0].due;
  remove(0);
  event->handler_(event->owner_, now_);
  return true;
}

void Scheduler::run_until(TimeNs limit) {
  while (run_one(limit)) {
  }
  now_ = std::max(now_, limit);
}

void Scheduler::pass(TimeNs now) {
  assert(now <= next());
  now_ = std::max(now_, now);
}

void Scheduler::place(size_t position, const Entry& entry) {
  heap_[position] = entry;
  entry.event->position_ = static_cast<int64_t>(position);
}

void Scheduler::sift_up(size_t position, Entry entry) {
  while (position > 0) {
    size_t parent = (position - 1) / kArity;
    if (!entry.before(heap_[parent])) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void Scheduler::sift_down(size_t position, Entry entry) {
  for (;;) {
    size_t first = position * kArity + 1;
    if (first >= heap_.size()) break;
    size_t last = std::min(first + kArity, heap_.size());
    size_t least = first;
    for (size_t child = first + 1; child < last; ++child) {
      if (heap_[child].before(heap_[least])) least = child;
    }
    if (!heap_[least].before(entry)) break;
    place(position, heap_[least]);
    position = least;
  }
  place(position, entry);
}

void Scheduler::remove(size_t position) {
  heap_[position].event->position_ = -1;
  Entry moved = heap_.back();
  heap_.pop_back();
  if (position == heap_.size()) return;
  if (position > 0 && moved.before(heap_[(position - 1) / kArity])) {
    sift_up(position, moved);
  } else {
    sift_down(position, moved);
  }
}

}  // namespace rocefs
