// PsnRanges: a set of PSNs, kept as ranges. Memory grows with the ranges, not with the PSNs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rocefs {

class PsnRanges {
 public:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  bool empty() const { return ranges_.empty(); }
  // The lowest range. Must not be empty.
  const Range& front() const { return ranges_.front(); }
  // Whether all PSNs from `begin` up to `end` are in the set.
  bool contains(uint64_t begin, uint64_t end) const {
    auto at = first_ending_from(begin + 1);
    return at != ranges_.end() && at->begin <= begin && end <= at->end;
  }
  void add(uint64_t begin, uint64_t end) {
    auto from = first_ending_from(begin), to = from;
    for (; to != ranges_.end() && to->begin <= end; ++to) {
      begin = std::min(begin, to->begin);
      end = std::max(end, to->end);
    }
    if (from == to) {
      ranges_.insert(from, {begin, end});
    } else {
      auto merged = ranges_.erase(from + 1, to) - 1;
      *merged = {begin, end};
    }
  }
  // Drops the PSNs before `psn`.
  void drop_before(uint64_t psn) {
    ranges_.erase(ranges_.begin(), first_ending_from(psn + 1));
    if (!empty()) ranges_.front().begin = std::max(ranges_.front().begin, psn);
  }
  void clear() { ranges_.clear(); }

 private:
  using Ranges = std::vector<Range>;
  static bool ends_before(const Range& range, uint64_t psn) { return range.end < psn; }
  Ranges::iterator first_ending_from(uint64_t psn) {
    return std::lower_bound(ranges_.begin(), ranges_.end(), psn, ends_before);
  }
  Ranges::const_iterator first_ending_from(uint64_t psn) const {
    return std::lower_bound(ranges_.begin(), ranges_.end(), psn, ends_before);
  }

  Ranges ranges_;  // sorted; they neither overlap nor touch
};

}  // namespace rocefs
