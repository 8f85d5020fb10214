// The Internet checksum (RFC 1071).
#pragma once

#include <algorithm>
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
    // Sums 64-bit words of any byte order with their carries, which is the same modulo 0xffff. Four
    // sums in registers, so that additions do not wait for each other.
    constexpr size_t kWord = sizeof(uint64_t);
    uint64_t a = sum_, b = 0, c = 0, d = 0;
    size_t at = 0;
    for (; at + 4 * kWord <= bytes.size(); at += 4 * kWord) {
      a = with_carry(a, word_at(&bytes[at], kWord));
      b = with_carry(b, word_at(&bytes[at + kWord], kWord));
      c = with_carry(c, word_at(&bytes[at + 2 * kWord], kWord));
      d = with_carry(d, word_at(&bytes[at + 3 * kWord], kWord));
    }
    for (; at < bytes.size(); at += kWord) {
      a = with_carry(a, word_at(&bytes[at], std::min(kWord, bytes.size() - at)));
    }
    sum_ = with_carry(with_carry(a, b), with_carry(c, d));
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
  static uint64_t word_at(const uint8_t* at, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, at, size);
    return word;
  }
  static uint64_t with_carry(uint64_t a, uint64_t b) {
    uint64_t sum = a + b;
    return sum + (sum < a);
  }

  uint64_t sum_ = 0;
};

}  // namespace rocefs
