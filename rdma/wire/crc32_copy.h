// CRC-32 of IEEE 802.3 over bytes that are copied meanwhile: with AVX-512 the copy costs nothing
// more, because each byte is loaded once.
#pragma once

#include <cstdint>
#include <span>

namespace rocefs::wire {

// Copies `from` to `to`, elsewhere, and continues `crc` (0 at the begin) over the bytes as they are
// in the copy, even while others change `from`.
uint32_t copy_with_crc32(uint32_t crc, std::span<const uint8_t> from, uint8_t* to);

}  // namespace rocefs::wire
