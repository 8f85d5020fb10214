// The Internet checksum against the plain sum of RFC 1071.
#include "rdma/host/checksum.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace rocefs::test {
namespace {

// Big-endian 16-bit words, one by one.
uint16_t plain(std::span<const uint8_t> bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) sum += i % 2 ? bytes[i] : bytes[i] << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

uint16_t stored(const ChecksumSum& sum) {
  uint8_t bytes[2];
  sum.store(bytes);
  return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

}  // namespace

TEST_CASE("checksum: every length, in one range and in two") {
  std::mt19937 random(1);
  for (size_t size = 0; size < 200; ++size) {
    // Octets of ones carry at every addition.
    for (bool ones : {false, true}) {
      std::vector<uint8_t> bytes(size);
      for (uint8_t& byte : bytes) byte = ones ? 0xff : static_cast<uint8_t>(random());
      ChecksumSum whole, parts;
      whole.add(bytes);
      size_t first = size / 4 * 2;
      parts.add(std::span(bytes).first(first));
      parts.add(std::span(bytes).subspan(first));
      INFO(size << " octets, ones " << ones);
      CHECK(stored(whole) == plain(bytes));
      CHECK(stored(parts) == plain(bytes));
    }
  }
}

}  // namespace rocefs::test
