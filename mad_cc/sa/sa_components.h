// Fields of records that ComponentMask selects (15.4.4): bit n of the mask is the n-th of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace rocefs::sa {

// Bits from the beginning of the record. Width 0: not compared, because it is reserved or not
// compared for equality.
struct Component {
  uint16_t bit;
  uint16_t width;
};

inline bool equal(const Component& component, const uint8_t* a, const uint8_t* b) {
  size_t octet = component.bit / 8;
  if (component.width % 8 == 0) return std::memcmp(a + octet, b + octet, component.width / 8) == 0;
  for (unsigned bit = component.bit; bit < component.bit + 0u + component.width; ++bit) {
    if (((a[bit / 8] ^ b[bit / 8]) & 0x80 >> bit % 8) != 0) return false;
  }
  return true;
}

// Returns whether the record matches the request. Bits of the mask without a component are ignored.
inline bool matches(std::span<const Component> components, uint64_t mask, const uint8_t* wanted,
                    const uint8_t* record) {
  for (size_t i = 0; i < components.size() && mask >> i != 0; ++i) {
    if ((mask >> i & 1) != 0 && !equal(components[i], wanted, record)) return false;
  }
  return true;
}

}  // namespace rocefs::sa
