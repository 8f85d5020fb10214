// LogHistogram: counts of values in buckets that are a part of a power of two wide, for quantiles
// of any number of values in bounded memory. A quantile is the middle of its bucket. With 64
// buckets for a power of two it differs from the value of that rank by at most 1/128 (0.8 %), in at
// most 30 KiB; values below 128 are exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace rocefs {

// Has 2^kBits buckets for a power of two.
template <unsigned kBits>
class BasicLogHistogram {
 public:
  void add(uint64_t value, uint64_t times = 1) {
    size_t bucket = bucket_of(value);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
    buckets_[bucket] += times;
    count_ += times;
    sum_ += static_cast<double>(value) * static_cast<double>(times);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }
  // Asks the CPU for what add() of this value will write.
  void prefetch(uint64_t value) const {
    const size_t bucket = bucket_of(value);
    if (bucket < buckets_.size()) __builtin_prefetch(&buckets_[bucket], 1);
  }
  // Adds all values of `other`: as if each had been added here.
  void merge(const BasicLogHistogram& other) {
    if (buckets_.size() < other.buckets_.size()) buckets_.resize(other.buckets_.size());
    for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  uint64_t count() const { return count_; }
  // Exact; 0 without values.
  double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  uint64_t max() const { return max_; }

  // Value of nearest rank: at least `fraction` of the values are not above it. 0 without values.
  uint64_t quantile(double fraction) const {
    auto rank = static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
    rank = std::clamp<uint64_t>(rank, 1, std::max<uint64_t>(count_, 1));
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank) return std::clamp(middle_of(i), min_, max_);
    }
    return 0;
  }

  // Calls `visit(value, count)` for the middle of each bucket that is not empty, in order.
  template <class Visit>
  void each(Visit visit) const {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i] > 0) visit(std::clamp(middle_of(i), min_, max_), buckets_[i]);
    }
  }

 private:
  static constexpr uint64_t kExact = uint64_t{2} << kBits;  // values below have a bucket each
  static constexpr uint64_t kSub = uint64_t{1} << kBits;

  static size_t bucket_of(uint64_t value) {
    if (value < kExact) return value;
    unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kBits;
    return kExact + (shift - 1) * kSub + ((value >> shift) & (kSub - 1));
  }
  static uint64_t middle_of(size_t bucket) {
    if (bucket < kExact) return bucket;
    unsigned shift = static_cast<unsigned>((bucket - kExact) / kSub) + 1;
    return ((kSub + (bucket - kExact) % kSub) << shift) + (uint64_t{1} << (shift - 1));
  }

  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  double sum_ = 0;
  uint64_t min_ = std::numeric_limits<uint64_t>::max(), max_ = 0;
};
using LogHistogram = BasicLogHistogram<6>;

}  // namespace rocefs
