// PriorityTurn: which of the priorities that have something goes next: 7 and 6 strictly first, as
// control traffic and CNPs want it, the others one after the other.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rocefs {

class PriorityTurn {
 public:
  // One of `ready`, a bit per priority, at least one of which is set.
  size_t next(uint8_t ready) {
    if (ready & 0x80) return 7;
    if (ready & 0x40) return 6;
    auto later = static_cast<uint8_t>(ready & (0xfe << last_));
    last_ = std::countr_zero(later ? later : ready);
    return static_cast<size_t>(last_);
  }
  void reset() { last_ = 7; }

 private:
  int last_ = 7;  // behind it comes 0
};

}  // namespace rocefs
