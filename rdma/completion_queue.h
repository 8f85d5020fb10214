// CompletionQueue: what has ended, in the order in which it did.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "rdma/verbs.h"

namespace rocefs {

class CompletionQueue {
 public:
  explicit CompletionQueue(size_t depth) : ring_(depth) {}

  // False when it is full: the completion is lost and the QP that made it must fail (IBTA
  // C10-97).
  [[nodiscard]] bool push(const Completion& completion) {
    if (count_ == ring_.size()) return false;
    ring_[(head_ + count_++) % ring_.size()] = completion;
    if (listener_) listener_();
    return true;
  }

  // Takes at most out.size() completions; returns how many.
  size_t poll(std::span<Completion> out) {
    size_t taken = 0;
    while (taken < out.size() && count_ > 0) {
      out[taken++] = ring_[head_];
      head_ = (head_ + 1) % ring_.size();
      --count_;
    }
    return taken;
  }

  // Called at each completion, in the middle of the packet's processing: it may only take note.
  void set_listener(std::function<void()> listener) { listener_ = std::move(listener); }

 private:
  std::vector<Completion> ring_;
  size_t head_ = 0;
  size_t count_ = 0;
  std::function<void()> listener_;
};

}  // namespace rocefs
