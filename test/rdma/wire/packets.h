// Packets made for the tests of the wire formats.
#pragma once

#include <span>
#include <string_view>

#include "core/base/rng.h"
#include "rdma/wire/icrc.h"
#include "rdma/wire/packet.h"
#include "test/rdma/wire/golden.h"

namespace rocefs::test {

// "0a 1b" is two octets; blanks mean nothing.
inline Bytes from_hex(std::string_view text) {
  Bytes out;
  int digits = 0;
  for (char c : text) {
    if (c == ' ') continue;
    int value = c <= '9' ? c - '0' : c - 'a' + 10;
    if (digits++ % 2 == 0) out.push_back(0);
    out.back() = static_cast<uint8_t>(out.back() << 4 | value);
  }
  return out;
}

inline std::vector<wire::Opcode> all_opcodes() {
  std::vector<wire::Opcode> opcodes;
  for (const wire::OpcodeInfo& info : wire::kOpcodeTable) {
    auto opcode = static_cast<wire::Opcode>(&info - wire::kOpcodeTable.data());
    if (info.valid) opcodes.push_back(opcode);
  }
  return opcodes;
}

inline Bytes random_bytes(Rng& rng, size_t length) {
  Bytes bytes(length);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
  return bytes;
}

// Every field that a sender chooses and that the opcode and IP version carry is drawn; the others,
// and the lengths and checksums, stay 0.
inline wire::Headers random_headers(Rng& rng, bool ipv6, wire::Opcode opcode) {
  auto bits = [&](int count) { return rng.next() >> (64 - count); };
  auto u8 = [&](int count = 8) { return static_cast<uint8_t>(bits(count)); };
  auto u16 = [&] { return static_cast<uint16_t>(bits(16)); };
  auto u32 = [&](int count = 32) { return static_cast<uint32_t>(bits(count)); };
  const wire::OpcodeInfo& info = wire::opcode_info(opcode);
  wire::Headers headers;
  headers.is_ipv6 = ipv6;
  if (ipv6) {
    headers.v6 = {u8(), u32(20), 0, 17, u8(), {}, {}};
    for (uint8_t& octet : headers.v6.src) octet = u8();
    for (uint8_t& octet : headers.v6.dst) octet = u8();
  } else {
    uint16_t do_not_fragment = rng.chance(0.5) ? 0x4000 : 0;
    headers.v4 = {u8(), 0, u16(), do_not_fragment, u8(), 17, 0, {}, {}};
    for (uint8_t& octet : headers.v4.src) octet = u8();
    for (uint8_t& octet : headers.v4.dst) octet = u8();
  }
  headers.udp = {u16(), wire::kRocePort, 0, 0};
  headers.bth = {opcode,     u8(1) != 0, u8(1) != 0, 0,          0,     u16(),  u8(1) != 0,
                 u8(1) != 0, u8(6),      u32(24),    u8(1) != 0, u8(7), u32(24)};
  if (info.has_xrceth) headers.xrc = {u8(), u32(24)};
  if (info.has_deth) headers.deth = {u32(), u8(), u32(24)};
  if (info.has_reth) headers.reth = {bits(64), u32(), u32()};
  if (info.has_atomic_eth) headers.atomic = {bits(64), u32(), bits(64), bits(64)};
  if (info.has_aeth) headers.aeth = {u8(), u32(24)};
  if (info.has_atomic_ack_eth) headers.atomic_ack = {bits(64)};
  if (info.has_imm) headers.imm = u32();
  if (info.has_ieth) headers.ieth = {u32()};
  if (info.has_cnp_reserved) {
    for (uint8_t& octet : headers.cnp_reserved) octet = u8();
  }
  return headers;
}

inline Bytes emitted(const wire::Headers& headers) {
  std::array<uint8_t, wire::kMaxHeaderLen> room;
  size_t length = wire::emit(headers, room);
  return Bytes(room.begin(), room.begin() + static_cast<long>(length));
}

// The packet that has these headers as they are, with pad and ICRC.
inline Bytes assembled(const wire::Headers& headers, std::span<const uint8_t> payload) {
  Bytes out = emitted(headers);
  Bytes pad(headers.bth.pad_count, 0);
  uint32_t icrc = wire::icrc(out, headers.is_ipv6, payload, pad);
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), pad.begin(), pad.end());
  out.resize(out.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(out).last(wire::kIcrcLen), icrc);
  return out;
}

// Makes the IPv4 header checksum right again. Adds as RFC 1071 says, apart from the code it tests.
inline void mend_checksum(Bytes& packet) {
  packet[10] = packet[11] = 0;
  uint32_t sum = 0;
  for (size_t i = 0; i < 20; ++i) sum += i % 2 ? packet[i] : uint32_t{packet[i]} << 8;
  while (sum > 0xffff) sum = (sum >> 16) + (sum & 0xffff);
  packet[10] = static_cast<uint8_t>((sum ^ 0xffff) >> 8);
  packet[11] = static_cast<uint8_t>(sum ^ 0xffff);
}

}  // namespace rocefs::test
