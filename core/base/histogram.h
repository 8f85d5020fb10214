// Histogram: durations in buckets of a quarter of a power of two, for percentiles that are right to
// within a fifth. One thread adds, any thread reads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "core/base/counter.h"
#include "core/base/time.h"

namespace rocefs {

class Histogram {
 public:
  void add(TimeNs value) { buckets_[bucket_of(value)].add(); }
  void add(const Histogram& other) {
    for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i].add(other.buckets_[i].get());
  }
  void clear() {
    for (Counter& bucket : buckets_) bucket.set(0);
  }
  uint64_t count() const {
    uint64_t total = 0;
    for (const Counter& bucket : buckets_) total += bucket.get();
    return total;
  }
  // The upper edge of the bucket that holds the `fraction` quantile; 0 if nothing was added.
  TimeNs quantile(double fraction) const {
    uint64_t total = count();
    if (total == 0) return 0;
    auto rank = static_cast<uint64_t>(fraction * static_cast<double>(total));
    rank = std::min(rank, total - 1);
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i].get();
      if (seen > rank) return upper_edge(i);
    }
    return upper_edge(buckets_.size() - 1);
  }

 private:
  static constexpr size_t kSub = 4;

  static size_t bucket_of(TimeNs value) {
    if (value < static_cast<TimeNs>(kSub)) return value < 0 ? 0 : static_cast<size_t>(value);
    auto bits = static_cast<uint64_t>(value);
    size_t exponent = static_cast<size_t>(std::bit_width(bits)) - 1;
    return (exponent - 1) * kSub + ((bits >> (exponent - 2)) & (kSub - 1));
  }
  static TimeNs upper_edge(size_t bucket) {
    if (bucket < kSub) return static_cast<TimeNs>(bucket);
    size_t exponent = bucket / kSub + 1;
    uint64_t step = uint64_t{1} << (exponent - 2);
    uint64_t edge = (uint64_t{1} << exponent) + (bucket % kSub + 1) * step - 1;
    return static_cast<TimeNs>(edge);
  }

  std::array<Counter, 62 * kSub> buckets_;
};

}  // namespace rocefs
