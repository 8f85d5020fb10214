// WorkQueue: a bounded FIFO, addressed by ever-growing positions. Memory grows as it fills, so that
// an idle queue pair costs little.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

namespace rocefs {

template <class T>
class WorkQueue {
 public:
  explicit WorkQueue(size_t depth) : depth_(depth) {}

  uint64_t head() const { return head_; }
  uint64_t tail() const { return tail_; }
  size_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == depth_; }
  bool holds(uint64_t position) const { return position - head_ < size(); }
  T& at(uint64_t position) { return slots_[position & mask_]; }
  const T& at(uint64_t position) const { return slots_[position & mask_]; }
  T& front() { return at(head_); }
  T& back() { return at(tail_ - 1); }
  // Precondition: not full.
  void push(const T& value) { claim() = value; }
  void push(T&& value) { claim() = std::move(value); }
  // As push(), for a caller that fills the slot itself; old content is still there.
  T& claim() {
    assert(!full());
    if (size() == mask_ + 1) grow();
    return at(tail_++);
  }
  void pop() { ++head_; }

 private:
  void grow() {
    size_t capacity = std::max<size_t>(4, (mask_ + 1) * 2);
    auto larger = std::make_unique<T[]>(capacity);
    for (uint64_t i = head_; i < tail_; ++i) larger[i & (capacity - 1)] = std::move(at(i));
    slots_ = std::move(larger);
    mask_ = capacity - 1;
  }

  std::unique_ptr<T[]> slots_;
  uint64_t mask_ = ~uint64_t{0};  // slots - 1; without slots all ones
  size_t depth_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace rocefs
