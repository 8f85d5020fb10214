// PccAgenda: queue pairs in the order of their next calls, lowest line first at equal times. Calls
// at a fixed interval arrive in this order and take the FIFO; the heap sorts the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class PccAgenda {
 public:
  struct Entry {
    TimeNs at;
    uint32_t line;
  };

  size_t size() const { return in_line_.size() + heap_.size(); }
  bool empty() const { return in_line_.empty() && heap_.empty(); }
  // Precondition of front() and pop(): not empty.
  const Entry& front() const { return heap_is_next() ? heap_.front() : in_line_.front(); }
  void pop() {
    if (!heap_is_next()) return in_line_.pop_front();
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
  void push(Entry entry) {
    if (in_line_.empty() || !later(in_line_.back(), entry)) return in_line_.push_back(entry);
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void clear() {
    in_line_.clear();
    heap_.clear();
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.line > b.line;
  }
  bool heap_is_next() const {
    return in_line_.empty() || (!heap_.empty() && later(in_line_.front(), heap_.front()));
  }

  std::deque<Entry> in_line_;
  std::vector<Entry> heap_;
};

}  // namespace rocefs
