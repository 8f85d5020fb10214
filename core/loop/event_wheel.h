// EventWheel: queue of the events that are due within 65 us, nearly all events of packets: a slot
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
  static constexpr TimeNs kSpan = 65'535;

  bool empty() const { return count_ == 0; }
  // Due time of the first event; kNever if there is none.
  TimeNs due() const { return due_; }
  // Not if it is empty.
  Event& first() const { return *slots_[slot_of(due_)].first; }
  // Sets due_ of the event. Its due time is at most kSpan after that of any other event here.
  void insert(Event& event, TimeNs due) {
    const size_t slot = slot_of(due);
    Slot& list = slots_[slot];
    event.due_ = due;
    event.next_ = nullptr;
    event.previous_ = list.last;
    if (list.last) {
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
    (event.previous_ ? event.previous_->next_ : list.first) = event.next_;
    (event.next_ ? event.next_->previous_ : list.last) = event.previous_;
    --count_;
    if (list.first) return;
    words_[slot / 64] &= ~(uint64_t{1} << slot % 64);
    if (words_[slot / 64] == 0) summary_[slot / 4096] &= ~(uint64_t{1} << slot / 64 % 64);
    if (event.due_ == due_) due_ = next_due(due_);
  }

 private:
  static constexpr size_t kSlots = 65'536;  // a power of two
  struct Slot {
    Event *first = nullptr, *last = nullptr;
  };

  static size_t slot_of(TimeNs due) { return static_cast<size_t>(due) % kSlots; }
  // Due time of the first event after `from`, where the wheel has turned to.
  TimeNs next_due(TimeNs from) const {
    if (count_ == 0) return kNever;
    const size_t at = slot_of(from);
    size_t found = after(at);
    if (found == kSlots) found = after(0);
    return from + static_cast<TimeNs>((found - at) % kSlots);
  }
  // First slot in use that is not before `slot`; kSlots if there is none.
  size_t after(size_t slot) const {
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
