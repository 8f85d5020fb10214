// The Internet checksum (RFC 1071).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rocefs {

// Sum of 16-bit words in ones' complement, of ranges added one after the other. Every range but the
// last has an even length.
class ChecksumSum {
 public:
  void add(std::span<const uint8_t> bytes) {
    // Sums 32-bit words of any byte order, which is the same modulo 0xffff.
    size_t i = 0;
    uint64_t sum = 0;
    for (; i + 4 <= bytes.size(); i += 4) {
      uint32_t word;
      std::memcpy(&word, bytes.data() + i, sizeof word);
      sum += word;
    }
    uint8_t rest[4] = {};
    std::memcpy(rest, bytes.data() + i, bytes.size() - i);
    uint32_t word;
    std::memcpy(&word, rest, sizeof word);
    sum_ += sum + word;
  }
  // Sum in the byte order of memory, folded to 16 bits.
  uint16_t folded() const {
    uint64_t sum = sum_;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(sum);
  }
  // Stores the checksum.
  void store(uint8_t* at) const {
    auto value = static_cast<uint16_t>(~folded());
    std::memcpy(at, &value, sizeof value);
  }

 private:
  uint64_t sum_ = 0;
};

}  // namespace rocefs
