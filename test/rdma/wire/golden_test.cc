#include "test/rdma/wire/golden.h"

#include <catch2/catch.hpp>

#include "rdma/wire/icrc.h"
#include "rdma/wire/packet.h"
#include "test/rdma/wire/packets.h"

using namespace rocefs;
using namespace rocefs::test;
using wire::ParseError;

namespace {

std::span<const uint8_t> payload_of(const Bytes& packet, const wire::Parsed& parsed) {
  return std::span(packet).subspan(parsed.header_len, parsed.payload_len);
}

// The check that finds damage to an octet.
enum class CoveredBy {
  kParserOrIcrc,
  kIpChecksum,  // outside the ICRC: IPv4 TOS, TTL and the header checksum itself
  kNothing,     // outside the ICRC: free to change on the way
};

// Octets outside the ICRC that nothing else covers:
//   UDP checksum  Soft-RoCE sends 0 and takes what it gets, and so does the parser;
//   BTH octet 4   FECN, BECN and the reserved bits beside them;
//   IPv6          traffic class, flow label and hop limit: IPv6 has no header checksum, and the
//                 UDP pseudo-header leaves these out.
// The first octet of IPv6 is half the version, which the parser looks at, and half traffic class.
CoveredBy coverage(size_t at, unsigned flip, bool ipv6) {
  size_t udp = ipv6 ? 40 : 20;
  if (at == udp + 6 || at == udp + 7 || at == udp + 8 + 4) return CoveredBy::kNothing;
  if (!ipv6) {
    bool outside = at == 1 || at == 8 || at == 10 || at == 11;
    return outside ? CoveredBy::kIpChecksum : CoveredBy::kParserOrIcrc;
  }
  bool outside = at == 1 || at == 2 || at == 3 || at == 7 || (at == 0 && (flip & 0xf0) == 0);
  return outside ? CoveredBy::kNothing : CoveredBy::kParserOrIcrc;
}

// Whether the damaged packet is treated as `coverage` promises.
bool treated_so(CoveredBy coverage, const Bytes& damaged, const wire::Parsed& original) {
  wire::Parsed parsed;
  ParseError error = wire::parse(damaged, parsed);
  switch (coverage) {
    case CoveredBy::kParserOrIcrc:
      return error != ParseError::kNone || !wire::icrc_ok(damaged, parsed);
    case CoveredBy::kIpChecksum:
      return error == ParseError::kBadIpHeader && wire::icrc_ok(damaged, original);
    case CoveredBy::kNothing:
      return error == ParseError::kNone && wire::icrc_ok(damaged, parsed);
  }
  return false;
}

}  // namespace

TEST_CASE("golden: all packets parse and are emitted again byte for byte") {
  auto packets = golden_packets();
  REQUIRE(packets.size() == 193);
  size_t ipv6 = 0;
  for (const Bytes& packet : packets) {
    wire::Parsed parsed;
    REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
    REQUIRE(parsed.has_icrc);
    REQUIRE(wire::icrc_ok(packet, parsed));
    REQUIRE(assembled(parsed.headers, payload_of(packet, parsed)) == packet);
    ipv6 += parsed.headers.is_ipv6;
  }
  CHECK(ipv6 == 26);
}

TEST_CASE("golden: lengths, pad count and checksums match those computed from the payload") {
  auto packets = golden_packets();
  REQUIRE(packets.size() == 193);
  for (const Bytes& packet : packets) {
    wire::Parsed parsed;
    REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
    wire::Headers headers = parsed.headers;
    headers.bth.pad_count = 0;
    headers.v4.total_length = headers.v4.checksum = 0;
    headers.v6.payload_length = 0;
    headers.udp.length = headers.udp.checksum = 0;
    wire::finish_lengths(headers, parsed.payload_len);
    REQUIRE(assembled(headers, payload_of(packet, parsed)) == packet);
  }
}

TEST_CASE("golden: headers parse alike without their payload") {
  auto packets = golden_packets();
  REQUIRE(packets.size() == 193);
  for (const Bytes& packet : packets) {
    wire::Parsed whole, apart;
    REQUIRE(wire::parse(packet, whole) == ParseError::kNone);
    Bytes headers(packet.begin(), packet.begin() + whole.header_len);  // ASan sees its end
    REQUIRE(wire::parse_headers(headers, whole.payload_len, apart) == ParseError::kNone);
    CHECK(apart.headers == whole.headers);
    CHECK(apart.header_len == whole.header_len);
    CHECK(apart.payload_len == whole.payload_len);
    CHECK(apart.pad_len == whole.pad_len);
    CHECK_FALSE(apart.has_icrc);
    CHECK(wire::parse_headers(headers, whole.payload_len + 1u, apart) == ParseError::kBadLength);
    headers.push_back(0);
    CHECK(wire::parse_headers(headers, whole.payload_len, apart) == ParseError::kBadLength);
  }
}

TEST_CASE("golden: each damaged octet is detected, except where it may change on the way") {
  auto packets = golden_packets();
  REQUIRE(packets.size() == 193);
  size_t flips = 0, octets = 0;
  for (const Bytes& packet : packets) {
    bool ipv6 = packet[0] >> 4 == 6;
    wire::Parsed original;
    REQUIRE(wire::parse(packet, original) == ParseError::kNone);
    octets += packet.size();
    for (size_t at = 0; at < packet.size(); ++at) {
      for (unsigned flip : {0x01u, 0x02u, 0x04u, 0x08u, 0x10u, 0x20u, 0x40u, 0x80u, 0xffu}) {
        Bytes damaged = packet;
        damaged[at] = static_cast<uint8_t>(damaged[at] ^ flip);
        ++flips;
        if (treated_so(coverage(at, flip, ipv6), damaged, original)) continue;
        FAIL("octet " << at << " of a packet of " << packet.size() << ", flip " << flip);
      }
    }
  }
  CHECK(flips == 9 * octets);
  CHECK(flips > 100'000);
}

TEST_CASE("golden: a truncated packet is refused, and never read past its end") {
  auto packets = golden_packets();
  REQUIRE(packets.size() == 193);
  for (const Bytes& packet : packets) {
    for (size_t length = 0; length < packet.size(); ++length) {
      Bytes cut(packet.begin(), packet.begin() + static_cast<long>(length));  // ASan sees its end
      wire::Parsed parsed;
      REQUIRE(wire::parse(cut, parsed) == ParseError::kTruncated);
    }
  }
}
