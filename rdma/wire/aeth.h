// Syndrome of an AETH.
#pragma once

#include <cstdint>

namespace rocefs::aeth {

// 31 credits: no end-to-end flow control.
inline constexpr uint8_t kAckUnlimited = 0x1f;
inline constexpr uint8_t kRnrNak = 0x20;  // plus a 5-bit timer
inline constexpr uint8_t kNakSequence = 0x60;
inline constexpr uint8_t kNakInvalidRequest = 0x61;
inline constexpr uint8_t kNakRemoteAccess = 0x62;
inline constexpr uint8_t kNakRemoteOperation = 0x63;

enum class Kind { kAck, kRnr, kNak, kMalformed };

inline Kind kind_of(uint8_t syndrome) {
  if (syndrome < 0x20) return Kind::kAck;
  if (syndrome < 0x40) return Kind::kRnr;
  return syndrome >= kNakSequence && syndrome <= kNakRemoteOperation ? Kind::kNak
                                                                     : Kind::kMalformed;
}
inline uint8_t value_of(uint8_t syndrome) {
  return syndrome & 0x1f;
}

}  // namespace rocefs::aeth
