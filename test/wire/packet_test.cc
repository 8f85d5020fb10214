#include "rdma/wire/packet.h"

#include <catch2/catch.hpp>
#include <vector>

#include "core/rng.h"
#include "rdma/wire/icrc.h"

using namespace rocefs;
using wire::Opcode;
using wire::ParseError;
using Bytes = std::vector<uint8_t>;

namespace {

wire::Headers plain_headers(bool ipv6, Opcode opcode) {
  wire::Headers headers;
  headers.is_ipv6 = ipv6;
  headers.v4.flags_fragment = 0x4000;
  headers.v4.ttl = 64;
  headers.v4.protocol = 17;
  headers.v4.src = {10, 0, 0, 1};
  headers.v4.dst = {10, 0, 0, 2};
  headers.v6.next_header = 17;
  headers.v6.hop_limit = 64;
  headers.udp.src_port = 0xc123;
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.opcode = opcode;
  headers.bth.pkey = 0xffff;
  headers.bth.dest_qpn = 0x123456;
  headers.bth.psn = 0xfedcba;
  return headers;
}

Bytes whole_packet(wire::Headers headers, const Bytes& payload) {
  wire::finish_lengths(headers, payload.size());
  Bytes out(wire::kMaxHeaderLen);
  out.resize(wire::emit(headers, out));
  Bytes bytes = out;
  Bytes pad(headers.bth.pad_count, 0);
  uint32_t icrc = wire::icrc(bytes, headers.is_ipv6, payload, pad);
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), pad.begin(), pad.end());
  out.resize(out.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(out).last(wire::kIcrcLen), icrc);
  return out;
}

ParseError parse(const Bytes& packet) {
  wire::Parsed parsed;
  return wire::parse(packet, parsed);
}

// CRC-32 a bit at a time, as the definition reads.
uint32_t slow_crc(const Bytes& bytes) {
  uint32_t crc = 0xffffffff;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  return ~crc;
}

}  // namespace

TEST_CASE("wire: what each opcode calls for is what IBTA tables 35 and 38 say") {
  struct Row {
    Opcode opcode;
    std::string_view name;
    int header_len;
    bool payload;
  };
  const Row rows[] = {
      {Opcode::kRcSendFirst, "RC_SEND_FIRST", 0, true},
      {Opcode::kRcSendOnlyImm, "RC_SEND_ONLY_IMM", 4, true},
      {Opcode::kRcSendLastInv, "RC_SEND_LAST_INV", 4, true},
      {Opcode::kRcWriteFirst, "RC_WRITE_FIRST", 16, true},
      {Opcode::kRcWriteMiddle, "RC_WRITE_MIDDLE", 0, true},
      {Opcode::kRcWriteOnlyImm, "RC_WRITE_ONLY_IMM", 20, true},
      {Opcode::kRcReadRequest, "RC_READ_REQUEST", 16, false},
      {Opcode::kRcReadResponseFirst, "RC_READ_RESPONSE_FIRST", 4, true},
      {Opcode::kRcReadResponseMiddle, "RC_READ_RESPONSE_MIDDLE", 0, true},
      {Opcode::kRcAck, "RC_ACKNOWLEDGE", 4, false},
      {Opcode::kRcAtomicAck, "RC_ATOMIC_ACKNOWLEDGE", 12, false},
      {Opcode::kRcCmpSwap, "RC_COMPARE_SWAP", 28, false},
      {Opcode::kRcFetchAdd, "RC_FETCH_ADD", 28, false},
      {Opcode::kUdSendOnly, "UD_SEND_ONLY", 8, true},
      {Opcode::kUdSendOnlyImm, "UD_SEND_ONLY_IMM", 12, true},
      {Opcode::kCnp, "CNP", 16, false},
  };
  for (const Row& row : rows) {
    const wire::OpcodeInfo& info = wire::opcode_info(row.opcode);
    CHECK(info.valid);
    CHECK(info.name == row.name);
    CHECK(info.header_len == row.header_len);
    CHECK(info.has_payload == row.payload);
  }
  int valid = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const wire::OpcodeInfo& info = wire::opcode_info(static_cast<uint8_t>(opcode));
    valid += info.valid;
    CHECK(info.header_len <= wire::kMaxExtensionLen);
  }
  CHECK(valid == 38);
}

TEST_CASE("wire: every opcode, IPv4 and IPv6, goes out and comes in with the same fields") {
  Rng rng(7, "wire round trip");
  for (int opcode = 0; opcode < 256; ++opcode) {
    const wire::OpcodeInfo& info = wire::opcode_info(static_cast<uint8_t>(opcode));
    if (!info.valid) continue;
    for (int round = 0; round < 50; ++round) {
      wire::Headers headers = plain_headers(round % 2, static_cast<Opcode>(opcode));
      headers.v6.flow_label = static_cast<uint32_t>(rng.below(1 << 20));
      headers.v6.traffic_class = static_cast<uint8_t>(rng.next());
      headers.v4.tos = static_cast<uint8_t>(rng.next());
      headers.bth.solicited = rng.chance(0.5);
      headers.bth.ack_req = rng.chance(0.5);
      headers.bth.fecn = rng.chance(0.5);
      headers.bth.reserved7 = static_cast<uint8_t>(rng.below(128));
      headers.deth = {static_cast<uint32_t>(rng.next()), 0, 77};
      headers.reth = {rng.next(), static_cast<uint32_t>(rng.next()), 4000};
      headers.atomic = {rng.next(), 5, rng.next(), rng.next()};
      headers.aeth = {0x63, 0xabcdef};
      headers.imm = static_cast<uint32_t>(rng.next());
      Bytes payload(info.has_payload ? rng.below(4097) : 0);
      for (uint8_t& byte : payload) byte = static_cast<uint8_t>(rng.next());
      Bytes packet = whole_packet(headers, payload);
      wire::Parsed parsed;
      REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
      REQUIRE(wire::icrc_ok(packet, parsed));
      CHECK(parsed.payload_len == payload.size());
      CHECK(parsed.headers.bth.psn == headers.bth.psn);
      CHECK(parsed.headers.bth.dest_qpn == headers.bth.dest_qpn);
      CHECK(parsed.headers.bth.ack_req == headers.bth.ack_req);
      if (info.has_reth) CHECK(parsed.headers.reth.va == headers.reth.va);
      if (info.has_atomic_eth) CHECK(parsed.headers.atomic.compare == headers.atomic.compare);
      if (info.has_imm) CHECK(parsed.headers.imm == headers.imm);
      if (info.has_aeth) CHECK(parsed.headers.aeth.msn == 0xabcdef);
    }
  }
}

TEST_CASE("wire: hostile headers are refused by name") {
  Bytes good = whole_packet(plain_headers(false, Opcode::kRcSendOnly), Bytes(5, 1));
  REQUIRE(parse(good) == ParseError::kNone);
  auto with = [&](auto change) {
    wire::Headers headers = plain_headers(false, Opcode::kRcSendOnly);
    wire::finish_lengths(headers, 5);
    change(headers);
    headers.v4.checksum = 0;
    Bytes bytes(wire::kMaxHeaderLen);
    bytes.resize(wire::emit(headers, bytes));
    uint32_t sum = 0;
    for (size_t i = 0; i < 20; i += 2) sum += static_cast<uint32_t>(bytes[i] << 8 | bytes[i + 1]);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    bytes[10] = static_cast<uint8_t>(~sum >> 8);
    bytes[11] = static_cast<uint8_t>(~sum);
    bytes.resize(bytes.size() + 5 + 3 + 4);
    return parse(bytes);
  };
  CHECK(with([](wire::Headers&) {}) == ParseError::kNone);
  CHECK(with([](wire::Headers& h) { h.v4.flags_fragment = 0x2000; }) == ParseError::kFragment);
  CHECK(with([](wire::Headers& h) { h.v4.flags_fragment = 1; }) == ParseError::kFragment);
  CHECK(with([](wire::Headers& h) { h.v4.protocol = 6; }) == ParseError::kNotUdp);
  CHECK(with([](wire::Headers& h) { h.udp.dst_port = 53; }) == ParseError::kNotRoce);
  CHECK(with([](wire::Headers& h) { h.udp.length += 4; }) == ParseError::kBadLength);
  CHECK(with([](wire::Headers& h) { h.v4.total_length = 3; }) == ParseError::kBadLength);
  CHECK(with([](wire::Headers& h) {
          h.v4.total_length += 1;
          h.udp.length += 1;
        }) != ParseError::kNone);
  CHECK(with([](wire::Headers& h) { h.bth.opcode = Opcode{0x1f}; }) == ParseError::kBadOpcode);
  CHECK(with([](wire::Headers& h) { h.bth.tver = 1; }) == ParseError::kBadTver);
  CHECK(with([](wire::Headers& h) { h.bth.opcode = Opcode::kRcAck; }) == ParseError::kBadPayload);

  Bytes options = good;
  options[0] = 0x46;
  CHECK(parse(options) == ParseError::kBadIpHeader);
  Bytes version = good;
  version[0] = 0x55;
  CHECK(parse(version) == ParseError::kBadIpVersion);
  CHECK(parse({}) == ParseError::kTruncated);
  Bytes longer = good;
  longer.resize(longer.size() + 20);  // Ethernet padding is not the packet's
  CHECK(parse(longer) == ParseError::kNone);
}

TEST_CASE("wire: random octets never parse into a packet with a right ICRC") {
  Rng rng(11, "wire noise");
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(rng.below(200));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
    if (!bytes.empty() && rng.chance(0.7)) bytes[0] = rng.chance(0.5) ? 0x45 : 0x60;
    wire::Parsed parsed;
    bool accepted = wire::parse(bytes, parsed) == ParseError::kNone && wire::icrc_ok(bytes, parsed);
    REQUIRE_FALSE(accepted);
  }
}

TEST_CASE("wire: the ICRC is the CRC-32 of the masked packet behind eight octets of ones") {
  for (bool ipv6 : {false, true}) {
    Bytes payload{1, 2, 3, 4, 5};
    wire::Headers headers = plain_headers(ipv6, Opcode::kRcWriteOnly);
    Bytes packet = whole_packet(headers, payload);
    Bytes masked = packet;
    masked.resize(packet.size() - wire::kIcrcLen);
    size_t udp = ipv6 ? 40 : 20;
    if (ipv6) {
      masked[0] |= 0x0f;
      masked[1] = masked[2] = masked[3] = masked[7] = 0xff;
    } else {
      masked[1] = masked[8] = masked[10] = masked[11] = 0xff;
    }
    masked[udp + 6] = masked[udp + 7] = masked[udp + 12] = 0xff;
    masked.insert(masked.begin(), 8, 0xff);
    CHECK(slow_crc(masked) == wire::load_icrc(std::span(packet).last(wire::kIcrcLen)));
  }
}
