// QueueTimes: for how long each egress queue had how many octets, of all switches of a run. A queue
// costs memory once it is used, and time at each change of its length alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/base/log_histogram.h"
#include "core/base/time.h"

namespace rocefs {

// Nanoseconds by octets. Each quantile is right to within 1/64 (1.6 %).
using OctetTimes = BasicLogHistogram<5>;

// Core thread, or while the engine stands still.
class QueueTimes {
 public:
  // Where the times of one more queue are added up.
  OctetTimes& add_queue() { return queues_.emplace_back(); }
  // The queue had so many octets for so long.
  void add(OctetTimes& times, uint64_t octets, TimeNs lasted) {
    changes_[count_++] = {&times, octets, lasted};
    if (count_ == kMany) settle();
  }
  // Adds up what has been added since: until then it is in no OctetTimes. Those of a large fabric
  // are not in the cache, so their misses overlap here.
  void settle() {
    for (size_t i = 0; i < count_; ++i) __builtin_prefetch(changes_[i].times, 1);
    for (size_t i = 0; i < count_; ++i) changes_[i].times->prefetch(changes_[i].octets);
    for (size_t i = 0; i < count_; ++i) {
      const Change& one = changes_[i];
      one.times->add(one.octets, static_cast<uint64_t>(one.lasted));
    }
    count_ = 0;
  }

 private:
  struct Change {
    OctetTimes* times = nullptr;
    uint64_t octets = 0;
    TimeNs lasted = 0;
  };
  static constexpr size_t kMany = 32;

  std::deque<OctetTimes> queues_;
  std::array<Change, kMany> changes_;
  size_t count_ = 0;
};

}  // namespace rocefs
