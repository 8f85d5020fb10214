#include "rdma/wire/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "rdma/wire/crc32_copy.h"

namespace rocefs::wire {
namespace {

constexpr size_t kOnes = 8;

void mask(uint8_t* header, bool ipv6) {
  if (ipv6) {
    header[0] |= 0x0f;  // traffic class and flow label
    std::fill_n(header + 1, 3, uint8_t{0xff});
    header[7] = 0xff;  // hop limit
    header += kIpv6Len;
  } else {
    header[1] = 0xff;  // TOS
    header[8] = 0xff;  // TTL
    header[10] = header[11] = 0xff;
    header += kIpv4Len;
  }
  header[6] = header[7] = 0xff;  // UDP checksum
  header[kUdpLen + 4] = 0xff;    // BTH: FECN, BECN, reserved
}

// The CRC up to the payload.
uint32_t headers_crc(std::span<const uint8_t> headers, bool ipv6) {
  assert(headers.size() >= (ipv6 ? kIpv6Len : kIpv4Len) + kUdpLen + kBthLen);
  assert(headers.size() <= kMaxHeaderLen);
  std::array<uint8_t, kOnes + kMaxHeaderLen> masked;
  std::fill_n(masked.begin(), kOnes, uint8_t{0xff});
  std::memcpy(masked.data() + kOnes, headers.data(), headers.size());
  mask(masked.data() + kOnes, ipv6);
  return crc32_gzip_refl(0, masked.data(), kOnes + headers.size());
}

}  // namespace

uint32_t icrc(std::span<const uint8_t> headers, bool ipv6, std::span<const uint8_t> payload,
              std::span<const uint8_t> pad) {
  uint32_t crc = headers_crc(headers, ipv6);
  if (!payload.empty()) crc = crc32_gzip_refl(crc, payload.data(), payload.size());
  if (!pad.empty()) crc = crc32_gzip_refl(crc, pad.data(), pad.size());
  return crc;
}

uint32_t copy_with_icrc(std::span<const uint8_t> headers, bool ipv6,
                        std::span<const uint8_t> payload, std::span<const uint8_t> pad,
                        uint8_t* out) {
  uint32_t crc = copy_with_crc32(headers_crc(headers, ipv6), payload, out);
  return copy_with_crc32(crc, pad, out + payload.size());
}

bool icrc_ok(std::span<const uint8_t> packet, const Parsed& parsed) {
  assert(parsed.has_icrc);
  std::span<const uint8_t> behind = packet.subspan(parsed.header_len);
  size_t length = parsed.payload_len;
  uint32_t crc = icrc(packet.first(parsed.header_len), parsed.headers.is_ipv6, behind.first(length),
                      behind.subspan(length, parsed.pad_len));
  return crc == load_icrc(behind.subspan(length + parsed.pad_len));
}

}  // namespace rocefs::wire
