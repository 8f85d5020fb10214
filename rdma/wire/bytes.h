// Big-endian numbers at any address.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace rocefs::wire {

inline uint16_t load16(const uint8_t* at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return __builtin_bswap16(value);
}
inline uint32_t load32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return __builtin_bswap32(value);
}
inline uint64_t load64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return __builtin_bswap64(value);
}
inline void store16(uint8_t* at, uint16_t value) {
  value = __builtin_bswap16(value);
  std::memcpy(at, &value, sizeof value);
}
inline void store32(uint8_t* at, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, sizeof value);
}
inline void store64(uint8_t* at, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(at, &value, sizeof value);
}

static_assert(std::endian::native == std::endian::little);

}  // namespace rocefs::wire
