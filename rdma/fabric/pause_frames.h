// PauseFrames: PAUSE and RESUME frames (IEEE 802.1Qbb) in flight on one direction of a cable, first
// in, first out. Allocates only to grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

struct PauseFrame {
  TimeNs arrival = 0;
  uint8_t priority = 0;
  bool pause = false;  // true: PAUSE, false: RESUME
};

class PauseFrames {
 public:
  bool empty() const { return count_ == 0; }
  const PauseFrame& front() const { return ring_[first_]; }
  void push(const PauseFrame& frame) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = frame;
  }
  PauseFrame pop() {
    PauseFrame frame = ring_[first_];
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
    return frame;
  }
  void clear() { count_ = 0; }

 private:
  void grow() {
    std::vector<PauseFrame> larger(ring_.size() * 2);
    for (size_t i = 0; i < count_; ++i) larger[i] = ring_[(first_ + i) & (ring_.size() - 1)];
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<PauseFrame> ring_ = std::vector<PauseFrame>(16);  // a power of two
  size_t first_ = 0, count_ = 0;
};

}  // namespace rocefs
