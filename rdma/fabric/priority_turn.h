// PriorityTurn: selects the next priority to transmit: 7 and 6 strictly first, for control traffic
// and CNPs. The others have equal shares of the octets, as by ETS (IEEE 802.1Qaz), in turn where
// their packets are equally long. A priority that had nothing to transmit has saved up nothing
// (start-time fair queueing, Goyal et al., SIGCOMM 1996).
#pragma once

#include <algorithm>
#include <array>
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
    const bool only = (ready & (ready - 1)) == 0;
    const size_t least = only ? static_cast<size_t>(std::countr_zero(ready)) : least_ahead(ready);
    const uint16_t passed = ahead_[least];
    for (uint16_t& ahead : ahead_) ahead = static_cast<uint16_t>(ahead - std::min(ahead, passed));
    last_ = static_cast<uint8_t>(least);
    return least;
  }
  // The priority that next() returned transmits so many octets, those of one packet at most.
  void sent(size_t priority, uint64_t octets) {
    if (priority < kFirstStrict) ahead_[priority] = static_cast<uint16_t>(octets);
  }
  void reset() { *this = {}; }

 private:
  static constexpr size_t kFirstStrict = 6;

  // The least far ahead; among equals, the first behind the one that was chosen last.
  size_t least_ahead(uint8_t ready) const {
    const auto later = static_cast<uint8_t>(ready & (0xfe << last_));
    size_t least = static_cast<size_t>(std::countr_zero(later ? later : ready));
    for (uint32_t among : {uint32_t{later}, uint32_t{ready} & ~uint32_t{later}}) {
      for (; among != 0; among &= among - 1) {
        const auto at = static_cast<size_t>(std::countr_zero(among));
        if (ahead_[at] < ahead_[least]) least = at;
      }
    }
    return least;
  }

  // Octets that a priority has sent more than the one which was chosen last had before its packet.
  // As many as fit one instruction.
  std::array<uint16_t, 8> ahead_{};
  uint8_t last_ = 7;  // priority 0 is next
};

}  // namespace rocefs
