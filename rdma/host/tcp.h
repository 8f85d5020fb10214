// Fields of the TCP header (RFC 9293).
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocefs::tcp {

inline constexpr uint8_t kProtocol = 6;  // of IP
inline constexpr size_t kLen = 20;       // without options
// Offsets.
inline constexpr size_t kSequence = 4, kDataOffset = 12, kFlags = 13, kChecksum = 16;
inline constexpr uint8_t kFin = 0x01, kPush = 0x08, kAck = 0x10, kCwr = 0x80;

// Octets of the header, with options.
inline size_t header_len(const uint8_t* tcp) {
  return size_t{tcp[kDataOffset]} >> 4 << 2;
}

}  // namespace rocefs::tcp
