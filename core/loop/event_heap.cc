#include "core/loop/event_heap.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/loop/event.h"

namespace rocefs {

void EventHeap::insert(Event& event, Key key) {
  if (std::exchange(vacant_, false)) return sift_down(0, key, &event);
  entries_.emplace_back();
  sift_up(entries_.size() - 1, key, &event);
}

void EventHeap::move(Event& event, Key key) {
  auto position = static_cast<size_t>(event.position_);
  if (key.before(entries_[position].key)) {
    sift_up(position, key, &event);
  } else {
    sift_down(position, key, &event);
  }
}

void EventHeap::remove(Event& event) {
  auto position = static_cast<size_t>(event.position_);
  Key key = entries_.back().key;
  Event* last = entries_.back().event;
  entries_.pop_back();
  if (position == entries_.size()) return;
  if (position > 0 && key.before(entries_[(position - 1) / kArity].key)) {
    sift_up(position, key, last);
  } else {
    sift_down(position, key, last);
  }
}

Event& EventHeap::take_first() {
  assert(!vacant_);
  vacant_ = true;
  return *entries_[0].event;
}

void EventHeap::fill() {
  vacant_ = false;
  Key key = entries_.back().key;
  Event* event = entries_.back().event;
  entries_.pop_back();
  if (!entries_.empty()) sift_down(0, key, event);
}

void EventHeap::place(size_t position, Key key, Event* event) {
  Entry& entry = entries_[position];
  entry.key = key;
  entry.event = event;
  event->position_ = static_cast<int32_t>(position);
}

void EventHeap::sift_up(size_t position, Key key, Event* event) {
  while (position > 0) {
    size_t parent = (position - 1) / kArity;
    if (!key.before(entries_[parent].key)) break;
    place(position, entries_[parent].key, entries_[parent].event);
    position = parent;
  }
  place(position, key, event);
}

// There must be at least one child.
size_t EventHeap::least_child(size_t position) const {
  size_t begin = position * kArity + 1;
  const Entry* first = &entries_[begin];
  size_t count = std::min(kArity, entries_.size() - begin);
  if (count == kArity) {
    size_t left = first[1].key.before(first[0].key) ? 1 : 0;
    size_t right = first[3].key.before(first[2].key) ? 3 : 2;
    return begin + (first[right].key.before(first[left].key) ? right : left);
  }
  size_t least = 0;
  for (size_t i = 1; i < count; ++i) least = first[i].key.before(first[least].key) ? i : least;
  return begin + least;
}

void EventHeap::sift_down(size_t position, Key key, Event* event) {
  while (position * kArity + 1 < entries_.size()) {
    size_t least = least_child(position);
    if (!entries_[least].key.before(key)) break;
    place(position, entries_[least].key, entries_[least].event);
    position = least;
  }
  place(position, key, event);
}

}  // namespace rocefs
