// WorkQueue: a bounded FIFO of work requests, addressed by ever-growing positions.
#pragma once

#include <cstdint>
#include <vector>

namespace rocefs {

template <class T>
class WorkQueue {
 public:
  explicit WorkQueue(size_t depth) : slots_(depth) {}

  uint64_t head() const { return head_; }
  uint64_t tail() const { return tail_; }
  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ == slots_.size(); }
  T& at(uint64_t position) { return slots_[position % slots_.size()]; }
  T& front() { return at(head_); }
  void push(const T& value) { at(tail_++) = value; }
  void pop() { ++head_; }

 private:
  std::vector<T> slots_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace rocefs
