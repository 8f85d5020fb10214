// The invariant CRC of RoCEv2 (annex A17): CRC-32 over eight octets of ones, the headers with every
// variant field as ones, payload and pad. Little-endian on the wire.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/wire/packet.h"

namespace rocefs::wire {

// `headers` reach from the IP header to the last extension header: at least as far as the BTH, at
// most kMaxHeaderLen octets.
uint32_t icrc(std::span<const uint8_t> headers, bool ipv6, std::span<const uint8_t> payload,
              std::span<const uint8_t> pad);

// As icrc(), and copies payload and pad to `out` in the same pass: the ICRC is that of the copy.
uint32_t copy_with_icrc(std::span<const uint8_t> headers, bool ipv6,
                        std::span<const uint8_t> payload, std::span<const uint8_t> pad,
                        uint8_t* out);

inline void store_icrc(std::span<uint8_t> out, uint32_t icrc) {
  for (size_t i = 0; i < kIcrcLen; ++i) out[i] = static_cast<uint8_t>(icrc >> (8 * i));
}
inline uint32_t load_icrc(std::span<const uint8_t> at) {
  return at[0] | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}

// Checks the ICRC of a packet; `parsed` is the result of parse() for it.
bool icrc_ok(std::span<const uint8_t> packet, const Parsed& parsed);

}  // namespace rocefs::wire
