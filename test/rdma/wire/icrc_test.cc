#include "rdma/wire/icrc.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "rdma/wire/crc32_copy.h"
#include "test/rdma/wire/packets.h"

using namespace rocefs;
using namespace rocefs::test;
using wire::Opcode;
using wire::ParseError;

namespace {

// CRC-32 a bit at a time, as the definition reads.
uint32_t slow_crc(const Bytes& bytes) {
  uint32_t crc = 0xffffffff;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  return ~crc;
}

// Annex A17.3.3 over a whole packet.
uint32_t slow_icrc(const Bytes& packet) {
  Bytes masked(packet.begin(), packet.end() - 4);
  bool ipv6 = masked[0] >> 4 == 6;
  size_t udp = ipv6 ? 40 : 20;
  if (ipv6) {
    masked[0] |= 0x0f;
    masked[1] = masked[2] = masked[3] = masked[7] = 0xff;
  } else {
    masked[1] = masked[8] = masked[10] = masked[11] = 0xff;
  }
  masked[udp + 6] = masked[udp + 7] = masked[udp + 8 + 4] = 0xff;
  masked.insert(masked.begin(), 8, 0xff);
  return slow_crc(masked);
}

uint32_t carried_icrc(const Bytes& packet) {
  return wire::load_icrc(std::span(packet).last(wire::kIcrcLen));
}

}  // namespace

TEST_CASE("icrc: the tests' own CRC is CRC-32, by its check value") {
  CHECK(slow_crc({'1', '2', '3', '4', '5', '6', '7', '8', '9'}) == 0xcbf43926);
}

TEST_CASE("icrc: the ICRC is little-endian on the wire") {
  Bytes out(wire::kIcrcLen);
  wire::store_icrc(out, 0x11223344);
  CHECK(out == from_hex("44 33 22 11"));
  CHECK(wire::load_icrc(out) == 0x11223344);
}

TEST_CASE("icrc: for every opcode it is the CRC-32 of ones followed by the masked packet") {
  Rng rng(3, "icrc");
  size_t packets = 0;
  for (Opcode opcode : all_opcodes()) {
    for (int round = 0; round < 12; ++round) {
      wire::Headers headers = random_headers(rng, round % 2, opcode);
      bool has_payload = wire::opcode_info(opcode).has_payload;
      Bytes payload = random_bytes(rng, has_payload ? rng.below(1025) : 0);
      wire::finish_lengths(headers, payload.size());
      Bytes packet = assembled(headers, payload);
      INFO(wire::opcode_info(opcode).name << ", payload of " << payload.size());
      REQUIRE(carried_icrc(packet) == slow_icrc(packet));
      ++packets;
    }
  }
  CHECK(packets == (39 + 24) * 12);
}

TEST_CASE("icrc: golden packets carry the ICRC that the tests' own CRC gives") {
  auto packets = golden_packets();
  REQUIRE(packets.size() == 193);
  for (const Bytes& packet : packets) REQUIRE(carried_icrc(packet) == slow_icrc(packet));
}

// No golden packet has these opcodes, so the packet is written out by hand.
TEST_CASE("icrc: SEND with invalidate, which no golden packet has, parses and is emitted") {
  for (bool last : {false, true}) {
    Bytes packet = from_hex(
        "45 00 00 38 00 00 40 00 40 11 00 00 0a 00 00 01 0a 00 00 02"  // IPv4, 56 octets
        "c1 23 12 b7 00 24 00 00"                                      // UDP, 36 octets
        "17 90 ff ff 00 12 34 56 80 fe dc ba"                          // BTH: SE, pad 1, A
        "00 11 22 33"                                                  // IETH
        "68 65 79 20 79 6f 75 00"                                      // seven octets and the pad
        "00 00 00 00");
    if (last) packet[28] = 0x16;
    mend_checksum(packet);
    wire::store_icrc(std::span(packet).last(wire::kIcrcLen), slow_icrc(packet));

    wire::Parsed parsed;
    REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
    CHECK(wire::icrc_ok(packet, parsed));
    CHECK(parsed.headers.bth.opcode == (last ? Opcode::kRcSendLastInv : Opcode::kRcSendOnlyInv));
    CHECK(parsed.headers.bth.solicited);
    CHECK(parsed.headers.ieth.rkey == 0x00112233);
    CHECK(parsed.payload_len == 7);
    CHECK(parsed.pad_len == 1);
    auto payload = std::span(packet).subspan(parsed.header_len, parsed.payload_len);
    CHECK(assembled(parsed.headers, payload) == packet);

    packet[parsed.header_len - 1u] ^= 1;  // another rkey
    REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
    CHECK_FALSE(wire::icrc_ok(packet, parsed));
  }
}

TEST_CASE("icrc: a CRC with a copy is the CRC of the copy, for every length and place") {
  Rng rng(5, "copy");
  Bytes source(4400);
  for (uint8_t& byte : source) byte = static_cast<uint8_t>(rng.next());
  for (size_t length = 0; length < 4200; length += length < 1100 ? 1 : 61) {
    const size_t from = rng.next() % 100, to = rng.next() % 100;
    Bytes copy(4400, 0xaa);
    const auto begin = static_cast<uint32_t>(rng.next());
    const std::span bytes = std::span(source).subspan(from, length);
    const uint32_t crc = wire::copy_with_crc32(0, bytes, copy.data() + to);
    REQUIRE(crc == slow_crc(Bytes(bytes.begin(), bytes.end())));
    REQUIRE(std::ranges::equal(bytes, std::span(copy).subspan(to, length)));
    REQUIRE(copy[to + length] == 0xaa);
    // Continues over two parts as over the whole.
    const size_t first = length > 0 ? begin % length : 0;
    const uint32_t part = wire::copy_with_crc32(0, bytes.first(first), copy.data());
    REQUIRE(wire::copy_with_crc32(part, bytes.subspan(first), copy.data() + first) == crc);
  }
}

TEST_CASE("icrc: an ICRC with a copy is that of payload and pad, which are copied") {
  const Bytes headers(wire::kIpv4Len + wire::kUdpLen + wire::kBthLen, 0x45);
  const Bytes payload(1021, 0x5a), pad(3, 0);
  Bytes copy(payload.size() + pad.size(), 0xff);
  const uint32_t whole = wire::icrc(headers, false, payload, pad);
  CHECK(wire::copy_with_icrc(headers, false, payload, pad, copy.data()) == whole);
  Bytes expected = payload;
  expected.insert(expected.end(), pad.begin(), pad.end());
  CHECK(copy == expected);
}
