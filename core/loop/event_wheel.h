// EventWheel: queue of the events that are due within 8 us, nearly all events of packets: a slot
// for each nanosecond. The events of a slot are due at the same time, so their order is that of
// scheduling, and no events are compared. Part of a scheduler.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"
#include "core/loop/event.h"

namespace rocefs {

class EventWheel {
 public:
  // Events are due later than now, and at most this much.
  static constexpr TimeNs kSpan = 8'191;

  size_t count() const { return count_; }
  // Due time of the first event; kNever if there is none.
  TimeNs due() const { return due_; }
  // Not if it is empty.
  Event& first() const { return *slots_[slot_of(due_)].first; }
  Event& take_first() {
    const size_t slot = slot_of(due_);
    Slot& list = slots_[slot];
    Event& event = *list.first;
    list.first = event.next_;
    --count_;
    if (!list.first) vacate(slot);
    return event;
  }
  // Event that is next after this one; null if it is the last. Reads no other event.
  Event* after(const Event& event) const {
    if (event.next_) return event.next_;
    const size_t slot = slot_of(event.due_), found = next_slot((slot + 1) % kSlots);
    const size_t first = slot_of(due_);
    return (found - first) % kSlots > (slot - first) % kSlots ? slots_[found].first : nullptr;
  }
  // Sets due_ of the event. Its due time is at most kSpan after that of any other event here.
  void insert(Event& event, TimeNs due) {
    const size_t slot = slot_of(due);
    Slot& list = slots_[slot];
    event.due_ = due;
    event.next_ = nullptr;
    event.previous_ = list.last;
    if (list.first) {
      list.last->next_ = &event;
    } else {
      list.first = &event;
      words_[slot / 64] |= uint64_t{1} << slot % 64;
      summary_[slot / 4096] |= uint64_t{1} << slot / 64 % 64;
    }
    list.last = &event;
    ++count_;
    if (due < due_) due_ = due;
  }
  void remove(Event& event) {
    const size_t slot = slot_of(event.due_);
    Slot& list = slots_[slot];
    (list.first == &event ? list.first : event.previous_->next_) = event.next_;
    (list.last == &event ? list.last : event.next_->previous_) = event.previous_;
    --count_;
    if (!list.first) vacate(slot);
  }

 private:
  static constexpr size_t kSlots = 8'192;  // a power of two; 128 KiB stay in the cache of a CPU
  struct Slot {
    Event* first = nullptr;
    Event* last = nullptr;  // valid if there is a first
  };

  static size_t slot_of(TimeNs due) { return static_cast<size_t>(due) % kSlots; }
  void vacate(size_t slot) {
    uint64_t& word = words_[slot / 64];
    word &= ~(uint64_t{1} << slot % 64);
    if (word == 0) summary_[slot / 4096] &= ~(uint64_t{1} << slot / 64 % 64);
    if (slot == slot_of(due_)) due_ = next_due(due_);
  }
  // Due time of the first event after `from`, where the wheel has turned to.
  TimeNs next_due(TimeNs from) const {
    if (count_ == 0) return kNever;
    const size_t at = slot_of(from);
    return from + static_cast<TimeNs>((next_slot(at) - at) % kSlots);
  }
  // First slot in use from `at`, around the wheel. There must be one.
  size_t next_slot(size_t at) const {
    const size_t found = not_before(at);
    return found == kSlots ? not_before(0) : found;
  }
  // First slot in use that is not before `slot`; kSlots if there is none.
  size_t not_before(size_t slot) const {
    size_t word = slot / 64;
    if (uint64_t bits = words_[word] & ~uint64_t{0} << slot % 64) return first_in(word, bits);
    size_t group = ++word / 64;
    if (word == words_.size()) return kSlots;
    uint64_t bits = summary_[group] & ~uint64_t{0} << word % 64;
    while (bits == 0) {
      if (++group == summary_.size()) return kSlots;
      bits = summary_[group];
    }
    word = group * 64 + static_cast<size_t>(std::countr_zero(bits));
    return first_in(word, words_[word]);
  }
  static size_t first_in(size_t word, uint64_t bits) {
    return word * 64 + static_cast<size_t>(std::countr_zero(bits));
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::array<uint64_t, kSlots / 64> words_{};      // a bit for each slot in use
  std::array<uint64_t, kSlots / 4096> summary_{};  // a bit for each word that is not 0
  size_t count_ = 0;
  TimeNs due_ = kNever;
};

}  // namespace rocefs
