#include "rdma/wire/packet.h"

#include <catch2/catch.hpp>
#include <set>

#include "rdma/wire/icrc.h"
#include "test/rdma/wire/packets.h"

using namespace rocefs;
using namespace rocefs::test;
using wire::Opcode;
using wire::ParseError;

namespace {

ParseError parse(const Bytes& packet) {
  wire::Parsed parsed;
  return wire::parse(packet, parsed);
}

// A good packet over the given IP version.
Bytes plain_packet(bool ipv6, Opcode opcode, size_t payload_len) {
  Rng rng(1, "plain packet");
  wire::Headers headers = random_headers(rng, ipv6, opcode);
  wire::finish_lengths(headers, payload_len);
  return assembled(headers, Bytes(payload_len, 0x5a));
}

void put16(Bytes& packet, size_t at, size_t value) {
  packet[at] = static_cast<uint8_t>(value >> 8);
  packet[at + 1] = static_cast<uint8_t>(value);
}

// The IPv4 packet with a changed octet or two and the checksum right again.
Bytes with(size_t at, uint8_t value) {
  Bytes packet = plain_packet(false, Opcode::kRcSendOnly, 5);
  packet[at] = value;
  mend_checksum(packet);
  return packet;
}

Bytes with_length(bool ipv6, size_t ip_length, size_t udp_length) {
  Bytes packet = plain_packet(ipv6, Opcode::kRcSendOnly, 64);
  put16(packet, ipv6 ? 4 : 2, ip_length);
  put16(packet, (ipv6 ? 40 : 20) + 4, udp_length);
  if (!ipv6) mend_checksum(packet);
  return packet;
}

}  // namespace

TEST_CASE("packet: every opcode survives emitting and parsing, over IPv4 and IPv6") {
  Rng rng(7, "wire round trip");
  size_t packets = 0;
  for (Opcode opcode : all_opcodes()) {
    const wire::OpcodeInfo& info = wire::opcode_info(opcode);
    for (int round = 0; round < 50; ++round) {
      wire::Headers headers = random_headers(rng, round % 2, opcode);
      Bytes payload = random_bytes(rng, info.has_payload ? rng.below(4097) : 0);
      wire::finish_lengths(headers, payload.size());
      Bytes packet = assembled(headers, payload);
      wire::Parsed parsed;
      INFO(info.name << ", payload of " << payload.size());
      REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
      REQUIRE(wire::icrc_ok(packet, parsed));
      REQUIRE(parsed.headers == headers);
      REQUIRE(parsed.header_len == (round % 2 ? 40u : 20u) + 8u + 12u + info.header_len);
      REQUIRE(parsed.payload_len == payload.size());
      REQUIRE(parsed.pad_len == (4 - payload.size() % 4) % 4);
      REQUIRE(packet.size() == size_t{parsed.header_len} + payload.size() + parsed.pad_len + 4u);
      ++packets;
    }
  }
  CHECK(packets == (39 + 24) * 50);
}

// Independent bytes: a mistake shared by parser and emitter would otherwise pass.
TEST_CASE("packet: each field is at its place in the headers' drawings") {
  wire::Headers headers;
  headers.v4 = {0x6a, 0x1234, 0x5678, 0x4000, 63, 17, 0x9abc, {10, 1, 2, 3}, {192, 168, 4, 5}};
  headers.udp = {0xc001, 4791, 0x0102, 0x0304};
  headers.bth = {Opcode::kRcCmpSwap, true, false, 2,       1, 0x7fff, true, false, 0x15,
                 0x0a0b0c,           true, 0x2a,  0x0d0e0f};
  headers.atomic = {0x1112131415161718, 0x21222324, 0x3132333435363738, 0x4142434445464748};
  std::string_view udp_bth = "c001 12b7 0102 0304  13 a1 7fff 95 0a0b0c aa 0d0e0f";
  std::string ipv4 = "45 6a 1234 5678 4000 3f 11 9abc 0a010203 c0a80405 ";
  CHECK(emitted(headers) == from_hex(ipv4.append(udp_bth).append(
                                "1112131415161718 21222324 3132333435363738 4142434445464748")));

  headers = {};
  headers.is_ipv6 = true;
  headers.v6 = {0xab, 0xcdef1, 0x2345, 17, 0x67, {}, {}};
  for (uint8_t i = 0; i < 16; ++i) headers.v6.src[i] = i, headers.v6.dst[i] = 0xf0 + i;
  headers.udp = {1, 2, 3, 4};
  headers.xrc = {0x91, 0x929394};
  headers.deth = {0x80010203, 0x44, 0x050607};
  headers.reth = {0x1112131415161718, 0x21222324, 0x31323334};
  headers.aeth = {0x63, 0x414243};
  headers.atomic_ack = {0x5152535455565758};
  headers.imm = 0x61626364;
  headers.ieth = {0x71727374};
  for (uint8_t i = 0; i < 16; ++i) headers.cnp_reserved[i] = 0x80 + i;
  auto behind_bth = [&](Opcode opcode) {
    headers.bth = {};
    headers.bth.opcode = opcode;
    headers.bth.mig_req = headers.bth.becn = true;
    Bytes bytes = emitted(headers);
    Bytes front = from_hex(
        "6 abcdef1 2345 11 67 000102030405060708090a0b0c0d0e0f f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
        "0001 0002 0003 0004  00 40 0000 40 000000 00 000000");
    front[48] = static_cast<uint8_t>(opcode);
    CHECK(Bytes(bytes.begin(), bytes.begin() + 60) == front);
    return Bytes(bytes.begin() + 60, bytes.end());
  };
  CHECK(behind_bth(Opcode::kUcSendMiddle).empty());
  CHECK(behind_bth(Opcode::kUdSendOnlyImm) == from_hex("80010203 44 050607 61626364"));
  CHECK(behind_bth(Opcode::kRcWriteOnlyImm) ==
        from_hex("1112131415161718 21222324 31323334 61626364"));
  CHECK(behind_bth(Opcode::kXrcSendMiddle) == from_hex("91 929394"));
  CHECK(behind_bth(Opcode::kXrcWriteOnlyImm) ==
        from_hex("91 929394 1112131415161718 21222324 31323334 61626364"));
  CHECK(behind_bth(Opcode::kXrcAck) == from_hex("63 414243"));
  CHECK(behind_bth(Opcode::kRcAtomicAck) == from_hex("63 414243 5152535455565758"));
  CHECK(behind_bth(Opcode::kRcSendOnlyInv) == from_hex("71727374"));
  CHECK(behind_bth(Opcode::kCnp) == from_hex("808182838485868788898a8b8c8d8e8f"));
}

TEST_CASE("packet: an invalid packet is refused with the matching error") {
  Bytes good = plain_packet(false, Opcode::kRcSendOnly, 5);
  REQUIRE(parse(good) == ParseError::kNone);
  CHECK(parse({}) == ParseError::kTruncated);
  CHECK(parse(with(0, 0x55)) == ParseError::kBadIpVersion);
  for (uint8_t ihl = 0; ihl < 16; ++ihl) {
    ParseError wanted = ihl == 5 ? ParseError::kNone : ParseError::kBadIpHeader;
    CHECK(parse(with(0, 0x40 | ihl)) == wanted);
  }
  CHECK(parse(with(6, 0x20)) == ParseError::kFragment);  // more fragments
  CHECK(parse(with(6, 0x1f)) == ParseError::kFragment);
  CHECK(parse(with(7, 0x01)) == ParseError::kFragment);
  CHECK(parse(with(6, 0x40)) == ParseError::kNone);  // do not fragment
  CHECK(parse(with(9, 6)) == ParseError::kNotUdp);
  CHECK(parse(with(23, 0xb6)) == ParseError::kNotRoce);
  for (uint8_t version = 1; version < 16; ++version) {
    CHECK(parse(with(29, version)) == ParseError::kBadTver);
  }
  CHECK(parse(with(28, 0x11)) == ParseError::kBadPayload);  // an ACK with more than its AETH
  for (int opcode = 0; opcode < 256; ++opcode) {
    const wire::OpcodeInfo& info = wire::opcode_info(static_cast<uint8_t>(opcode));
    if (info.valid) continue;
    ParseError expected = info.reserved ? ParseError::kNone : ParseError::kBadOpcode;
    CHECK(parse(with(28, static_cast<uint8_t>(opcode))) == expected);
  }

  Bytes next_header = plain_packet(true, Opcode::kRcSendOnly, 5);
  REQUIRE(parse(next_header) == ParseError::kNone);
  next_header[6] = 44;  // the IPv6 fragment header
  CHECK(parse(next_header) == ParseError::kNotUdp);

  Bytes pad_of_nothing = plain_packet(false, Opcode::kRcSendOnly, 0);
  pad_of_nothing[29] |= 0x30;
  CHECK(parse(pad_of_nothing) == ParseError::kBadPad);
  Bytes padded_ack = plain_packet(false, Opcode::kRcAck, 0);
  padded_ack[29] |= 0x10;
  CHECK(parse(padded_ack) == ParseError::kBadPad);
}

TEST_CASE("packet: octets behind the IP length are not part of the packet") {
  for (bool ipv6 : {false, true}) {
    Bytes packet = plain_packet(ipv6, Opcode::kRcAck, 0);
    for (uint8_t filler : {0x00, 0xff}) {
      Bytes frame = packet;
      frame.resize(packet.size() + 20, filler);
      wire::Parsed alone, padded;
      REQUIRE(wire::parse(packet, alone) == ParseError::kNone);
      REQUIRE(wire::parse(frame, padded) == ParseError::kNone);
      CHECK(padded.headers == alone.headers);
      CHECK(padded.payload_len == 0);
      CHECK(wire::icrc_ok(frame, padded));
    }
  }
}

TEST_CASE("packet: only the right length is accepted; what the IP length alone counts is options") {
  for (bool ipv6 : {false, true}) {
    size_t before_udp = ipv6 ? 0 : 20, right = 8 + 12 + 64 + 4;
    size_t taken = 0, unlike_taken = 0, wrong = 0;
    for (size_t udp = 0; udp + before_udp <= 0xffff; ++udp) {
      // Both say the same: whole words that the frame holds are a packet, with a wrong ICRC.
      Bytes packet = with_length(ipv6, udp + before_udp, udp);
      wire::Parsed parsed;
      ParseError error = wire::parse(packet, parsed);
      bool plausible = udp >= 24 && udp <= right && udp % 4 == 0;
      wrong += (error == ParseError::kNone) != plausible;
      taken += error == ParseError::kNone && wire::icrc_ok(packet, parsed);
      // Only one of the two lengths is wrong. The ICRC covers both.
      if (udp == right) continue;
      packet = with_length(ipv6, udp + before_udp, right);
      error = wire::parse(packet, parsed);
      unlike_taken += error == ParseError::kNone;  // the octets are not there
      taken += error == ParseError::kNone && wire::icrc_ok(packet, parsed);
      packet = with_length(ipv6, right + before_udp, udp);
      error = wire::parse(packet, parsed);
      unlike_taken += (error == ParseError::kNone) != plausible;
      taken += error == ParseError::kNone && wire::icrc_ok(packet, parsed);
    }
    CHECK(wrong == 0);
    CHECK(taken == 1);
    CHECK(unlike_taken == 0);
    CHECK(parse(with_length(ipv6, right + before_udp, right)) == ParseError::kNone);
  }
}

TEST_CASE("packet: random octets never parse into a packet with a valid ICRC") {
  Rng rng(11, "wire noise");
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = random_bytes(rng, rng.below(200));
    if (bytes.size() >= 20 && rng.chance(0.7)) {
      bytes[0] = rng.chance(0.5) ? 0x45 : 0x60;
      if (bytes[0] == 0x45) mend_checksum(bytes);
    }
    wire::Parsed parsed;
    accepted += wire::parse(bytes, parsed) == ParseError::kNone && wire::icrc_ok(bytes, parsed);
  }
  CHECK(accepted == 0);
}

// Damage that leaves most of a packet right reaches every check of the parser. An accepted packet
// lies inside the given octets, and no part of the headers is lost.
TEST_CASE("packet: damaged packets are refused, or parse as exactly what they say") {
  Rng rng(13, "wire damage");
  std::vector<Opcode> opcodes = all_opcodes();
  std::set<ParseError> met;
  size_t lost = 0, outside = 0, unlike = 0, right = 0;
  for (int round = 0; round < 100'000; ++round) {
    Opcode opcode = opcodes[rng.below(opcodes.size())];
    wire::Headers headers = random_headers(rng, rng.chance(0.5), opcode);
    size_t payload = wire::opcode_info(opcode).has_payload ? rng.below(40) : 0;
    wire::finish_lengths(headers, payload);
    Bytes packet = assembled(headers, Bytes(payload, 1));
    for (uint64_t changes = rng.below(4); changes > 0; --changes) {
      size_t at = rng.below(rng.chance(0.7) ? 34 : packet.size());
      packet[at] = static_cast<uint8_t>(packet[at] ^ 1u << rng.below(8));
    }
    if (packet[0] == 0x45 && rng.chance(0.9)) mend_checksum(packet);
    size_t length = rng.chance(0.3) ? rng.below(packet.size() + 9) : packet.size();
    packet.resize(length);
    Bytes exact(packet.begin(), packet.end());  // no spare room: ASan sees its end
    wire::Parsed whole, apart;
    ParseError error = wire::parse(exact, whole);
    met.insert(error);
    if (error != ParseError::kNone) continue;
    size_t end = size_t{whole.header_len} + whole.payload_len + whole.pad_len + wire::kIcrcLen;
    outside += end > exact.size();
    auto bytes = std::span(exact).first(whole.header_len);
    Bytes again = emitted(whole.headers);
    lost += !std::equal(bytes.begin(), bytes.end(), again.begin(), again.end());
    unlike += wire::parse_headers(bytes, whole.payload_len, apart) != ParseError::kNone;
    unlike += apart.headers != whole.headers;
    right += wire::icrc_ok(exact, whole);
  }
  CHECK(right > 1000);
  CHECK(outside == 0);
  CHECK(lost == 0);
  CHECK(unlike == 0);
  for (int error = 0; !wire::name(static_cast<ParseError>(error)).starts_with("?"); ++error) {
    INFO(wire::name(static_cast<ParseError>(error)));
    CHECK(met.contains(static_cast<ParseError>(error)));
  }
}

TEST_CASE("packet: ECN bits given to a packet are emitted as if its traffic class had them") {
  Rng rng(8, "ecn bits");
  for (int round = 0; round < 200; ++round) {
    bool ipv6 = round % 2;
    wire::Headers headers = random_headers(rng, ipv6, Opcode::kRcSendMiddle);
    uint8_t& traffic_class = ipv6 ? headers.v6.traffic_class : headers.v4.tos;
    traffic_class &= 0xfc;
    wire::HeaderTemplate without(headers);
    for (uint8_t ecn = 0; ecn < 4; ++ecn) {
      wire::Headers marked = headers;
      (ipv6 ? marked.v6.traffic_class : marked.v4.tos) |= ecn;
      std::array<uint8_t, wire::kMaxHeaderLen> given{}, own{};
      wire::HeaderTemplate::Fields fields;
      fields.opcode = Opcode::kRcSendMiddle;
      size_t length = wire::HeaderTemplate(marked).emit(fields, marked, 256, own);
      fields.ecn = ecn;
      CHECK(without.emit(fields, headers, 256, given) == length);
      CHECK(given == own);
    }
  }
}
