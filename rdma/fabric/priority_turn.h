// PriorityTurn: selects the next priority to transmit: 7 and 6 strictly first, for control traffic
// and CNPs, the others in turn (round robin).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rocefs {

class PriorityTurn {
 public:
  // `ready`: a bit per priority, at least one set. Returns one of them.
  size_t next(uint8_t ready) {
    if (ready & 0x80) return 7;
    if (ready & 0x40) return 6;
    auto later = static_cast<uint8_t>(ready & (0xfe << last_));
    last_ = static_cast<uint8_t>(std::countr_zero(later ? later : ready));
    return last_;
  }
  void reset() { last_ = 7; }

 private:
  uint8_t last_ = 7;  // priority 0 is next
};

}  // namespace rocefs
