// Lookahead: asks the CPU for the memory of the next events in the wheel while earlier ones run. In
// a large fabric every event finds its packet, link and port outside of the cache; so their misses
// overlap. It changes no order. Part of a scheduler.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/prefetch.h"
#include "core/loop/event.h"
#include "core/loop/event_wheel.h"

namespace rocefs {

class Lookahead {
 public:
  // `running`, the first event of the wheel, is about to be taken out and run.
  void advance(const EventWheel& wheel, Event& running) {
    if (wheel.count() < kMany) {
      count_ = 0;
      return;
    }
    if (count_ > 0) {
      if (&at(0) != &running) return;  // it was scheduled after the wheel was read
      ++first_;
      --count_;
    }
    const Event* last = count_ > 0 ? &at(count_ - 1) : &running;
    for (size_t i = 0; i < 2 && count_ < kDepth; ++i) {
      Event* next = wheel.after(*last);
      if (!next) break;
      prefetch_two_lines(next);
      events_[(first_ + count_++) % kSize] = next;
      last = next;
    }
    for (int step = 0; step < 4; ++step) {
      const auto place = static_cast<size_t>(3 - step);
      if (place + 1 < count_) prefetch(at(place), step);
    }
  }
  // An event leaves the wheel before its time.
  void forget(const Event& event) {
    for (size_t i = 0; i < count_; ++i) {
      if (&at(i) == &event) count_ = 0;
    }
  }

 private:
  // With fewer events their memory is in the cache, and asking for it only costs time.
  static constexpr size_t kMany = 2048;
  static constexpr size_t kDepth = 5;
  static constexpr size_t kSize = 8;  // a power of two
  static void prefetch(const Event& event, int step) {
    if (event.kind_.prefetch) event.kind_.prefetch(event.owner_, step);
  }
  Event& at(size_t place) const { return *events_[(first_ + place) % kSize]; }

  std::array<Event*, kSize> events_{};  // a ring
  size_t first_ = 0, count_ = 0;
};

}  // namespace rocefs
