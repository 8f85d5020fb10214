#include "test/wire/golden.h"

#include <catch2/catch.hpp>

#include "rdma/wire/icrc.h"
#include "rdma/wire/packet.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;
using wire::ParseError;

namespace {

// What leaves when only the parsed fields and the payload are kept.
Bytes rebuilt(const wire::Parsed& parsed, std::span<const uint8_t> payload) {
  Bytes out(wire::kMaxHeaderLen);
  out.resize(wire::emit(parsed.headers, out));
  Bytes headers = out;
  Bytes pad(parsed.pad_len, 0);
  uint32_t icrc = wire::icrc(headers, parsed.headers.is_ipv6, payload, pad);
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), pad.begin(), pad.end());
  out.resize(out.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(out).last(wire::kIcrcLen), icrc);
  return out;
}

// Octets that ICRC takes as ones, because they may change on the way.
bool masked(size_t at, bool ipv6) {
  size_t udp = ipv6 ? 40 : 20;
  if (at == udp + 6 || at == udp + 7) return true;  // UDP checksum
  if (at == udp + 8 + 4) return true;               // BTH: FECN, BECN, reserved
  if (ipv6) return at == 1 || at == 2 || at == 3 || at == 7;
  return false;  // IPv4: TOS, TTL and checksum are covered by the header checksum
}

bool refused(const Bytes& packet) {
  wire::Parsed parsed;
  return wire::parse(packet, parsed) != ParseError::kNone || !wire::icrc_ok(packet, parsed);
}

}  // namespace

TEST_CASE("wire: all golden packets parse and are emitted again byte for byte") {
  auto packets = golden_packets();
  if (!packets) return skip("no rxe-golden.pcap in " + shared_folder());
  REQUIRE(packets->size() == 193);
  size_t ipv6 = 0;
  for (const Bytes& packet : *packets) {
    wire::Parsed parsed;
    REQUIRE(wire::parse(packet, parsed) == ParseError::kNone);
    REQUIRE(wire::icrc_ok(packet, parsed));
    auto payload = std::span(packet).subspan(parsed.header_len, parsed.payload_len);
    REQUIRE(rebuilt(parsed, payload) == packet);
    ipv6 += parsed.headers.is_ipv6;
  }
  CHECK(ipv6 == 26);
}

TEST_CASE("wire: headers of golden packets parse alike when their payload travels apart") {
  auto packets = golden_packets();
  if (!packets) return skip("no rxe-golden.pcap in " + shared_folder());
  for (const Bytes& packet : *packets) {
    wire::Parsed whole, apart;
    REQUIRE(wire::parse(packet, whole) == ParseError::kNone);
    auto headers = std::span(packet).first(whole.header_len);
    REQUIRE(wire::parse_headers(headers, whole.payload_len, apart) == ParseError::kNone);
    CHECK(apart.headers.bth.psn == whole.headers.bth.psn);
    CHECK(apart.pad_len == whole.pad_len);
    CHECK(wire::parse_headers(headers, whole.payload_len + 1, apart) != ParseError::kNone);
  }
}

TEST_CASE("wire: each flipped byte of a golden packet is refused, but for the masked ones") {
  auto packets = golden_packets();
  if (!packets) return skip("no rxe-golden.pcap in " + shared_folder());
  size_t flips = 0, survivors = 0;
  for (const Bytes& packet : *packets) {
    bool ipv6 = packet[0] >> 4 == 6;
    for (size_t at = 0; at < packet.size(); ++at) {
      for (unsigned flip : {0x01u, 0x02u, 0x04u, 0x08u, 0x10u, 0x20u, 0x40u, 0x80u, 0xffu}) {
        Bytes damaged = packet;
        damaged[at] = static_cast<uint8_t>(damaged[at] ^ flip);
        ++flips;
        if (refused(damaged)) continue;
        // The version nibble shares its octet with the traffic class of IPv6.
        bool half_masked = ipv6 && at == 0 && (flip & 0xf0) == 0;
        INFO("byte " << at << " of a packet of " << packet.size() << ", flip " << flip);
        REQUIRE((masked(at, ipv6) || half_masked));
        ++survivors;
      }
    }
  }
  CHECK(flips > 100'000);
  CHECK(survivors > 0);  // the masked octets really are free
}

TEST_CASE("wire: no cut of a golden packet is read past its end") {
  auto packets = golden_packets();
  if (!packets) return skip("no rxe-golden.pcap in " + shared_folder());
  for (const Bytes& packet : *packets) {
    for (size_t length = 0; length < packet.size(); ++length) {
      Bytes cut(packet.begin(), packet.begin() + static_cast<long>(length));  // ASan sees its end
      wire::Parsed parsed;
      REQUIRE(wire::parse(cut, parsed) != ParseError::kNone);
    }
  }
}
