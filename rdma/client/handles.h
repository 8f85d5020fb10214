// Handles: objects that a client names by numbers. 0 is invalid.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

template <class T>
class Handles {
 public:
  explicit Handles(size_t limit) : limit_(limit) {}

  bool full() const { return free_.empty() && slots_.size() == limit_; }
  // Must not be full.
  uint32_t add(std::unique_ptr<T> object) {
    if (free_.empty()) {
      slots_.push_back(std::move(object));
      return static_cast<uint32_t>(slots_.size());
    }
    uint32_t handle = free_.back();
    free_.pop_back();
    slots_[handle - 1] = std::move(object);
    return handle;
  }
  // Null for an invalid handle.
  T* find(uint32_t handle) const {
    return handle >= 1 && handle <= slots_.size() ? slots_[handle - 1].get() : nullptr;
  }
  std::unique_ptr<T> take(uint32_t handle) {
    free_.push_back(handle);
    return std::move(slots_[handle - 1]);
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& object : slots_) {
      if (object) visit(*object);
    }
  }
  void clear() {
    slots_.clear();
    free_.clear();
  }

 private:
  const size_t limit_;
  std::vector<std::unique_ptr<T>> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace rocefs
