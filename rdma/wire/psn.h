// Packet sequence numbers: 24 bits on the wire, 64 inside, so that comparison gives their order.
#pragma once

#include <bit>
#include <cstdint>

namespace rocefs {

inline constexpr uint32_t kPsnMask = 0xffffff;
// Maximum of unacknowledged PSNs: beyond it new ones look like old ones (IBTA 9.7.2).
inline constexpr uint64_t kPsnHalf = uint64_t{1} << 23;
// First unwrapped number: PSNs older than the first one stay above zero.
inline constexpr uint64_t kPsnBase = uint64_t{1} << 32;

// The unwrapped PSN nearest to `reference` whose low 24 bits are `psn`: half of
// the space is ahead of it, half behind.
inline uint64_t unwrap_psn(uint32_t psn, uint64_t reference) {
  int32_t delta = static_cast<int32_t>((psn - static_cast<uint32_t>(reference)) << 8) >> 8;
  return reference + static_cast<uint64_t>(static_cast<int64_t>(delta));
}

// Number of PSNs of a message or a READ of `length` bytes, at least one. MTUs are powers of two.
inline uint64_t psns_of(uint64_t length, uint32_t mtu) {
  return length == 0 ? 1 : ((length - 1) >> std::countr_zero(mtu)) + 1;
}

}  // namespace rocefs
