// PccAgenda: queue pairs in the order of their next calls, lowest place first at equal times. Calls
// at a fixed interval arrive in this order and take the FIFO; the heap sorts the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

class PccAgenda {
 public:
  struct Entry {
    TimeNs at;
    uint32_t place;  // of the queue pair among those of its poller
  };

  size_t size() const { return end_ - begin_ + heap_.size(); }
  // The first entry, until the next change; null if there is none.
  const Entry* front() const {
    if (!heap_.empty() && heap_is_next()) return &heap_.front();
    return begin_ != end_ ? &in_line(begin_) : nullptr;
  }
  // Removes the first entry. Precondition: there is one.
  void pop() {
    if (!heap_.empty() && heap_is_next()) return pop_from_heap();
    ++begin_;
  }
  void push(TimeNs at, uint32_t place) {
    if (begin_ != end_ && later(in_line(end_ - 1), {at, place})) return push_to_heap({at, place});
    if (end_ - begin_ > mask_) grow();
    // Word by word: the CPU would wait for a load of both words that were stored one by one.
    Entry& entry = ring_[end_++ & mask_];
    entry.at = at;
    entry.place = place;
  }
  void clear() {
    begin_ = end_;
    heap_.clear();
  }

 private:
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.place > b.place;
  }
  const Entry& in_line(size_t number) const { return ring_[number & mask_]; }
  // Precondition: the heap is not empty.
  bool heap_is_next() const { return begin_ == end_ || later(in_line(begin_), heap_.front()); }
  void pop_from_heap();
  void push_to_heap(const Entry& entry);
  void grow();

  // The FIFO: entries begin_ to end_, each at its number modulo the size, a power of two.
  std::vector<Entry> ring_ = std::vector<Entry>(64);
  size_t mask_ = ring_.size() - 1, begin_ = 0, end_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace rocefs
