// IP ID that a UDP socket does not show, solved from the ICRC.
#include "rdma/packet/icrc_solver.h"

#include "rdma/packet/datagram.h"
#include "rdma/wire/bytes.h"
#include "rdma/wire/icrc.h"
#include "test/rdma/wire/golden.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Octets = std::vector<uint8_t>;
using Verdict = IcrcSolver::Verdict;

struct Outcome {
  bool taken = false;
  Verdict verdict{};
  Octets bytes;  // whole packet
};

// Datagram as a socket gives it, and the resulting packet.
Outcome through_a_socket(const Octets& whole, uint16_t place = 0) {
  wire::Parsed parsed;
  REQUIRE(wire::parse(whole, parsed) == wire::ParseError::kNone);
  bool v6 = parsed.headers.is_ipv6;
  UdpAddress from, to;
  from.ip = v6 ? parsed.headers.v6.src : mapped_ipv4(parsed.headers.v4.src);
  to.ip = v6 ? parsed.headers.v6.dst : mapped_ipv4(parsed.headers.v4.dst);
  from.port = parsed.headers.udp.src_port;
  to.port = parsed.headers.udp.dst_port;
  size_t skipped = (v6 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen;
  size_t length = (v6 ? wire::kIpv6Len : 0) +
                  (v6 ? parsed.headers.v6.payload_length : parsed.headers.v4.total_length);
  Octets room(kDatagramHeadroom, 0xa5);
  room.insert(room.end(), whole.begin() + static_cast<long>(skipped),
              whole.begin() + static_cast<long>(length));
  Outstanding outstanding;
  PacketPool pool(outstanding);
  static const IcrcSolver solver;
  Outcome outcome;
  uint8_t traffic_class = v6 ? parsed.headers.v6.traffic_class : parsed.headers.v4.tos;
  PacketPtr packet =
      packet_of_datagram(pool, solver, from, to, traffic_class, place, room, outcome.verdict);
  if (!packet) return outcome;
  outcome.taken = true;
  auto header = packet->header_bytes();
  outcome.bytes.assign(header.begin(), header.end());
  const uint8_t* behind = packet->frame->bytes.data();
  outcome.bytes.insert(outcome.bytes.end(), behind,
                       behind + packet->wire_length() - packet->header_len);
  packet.reset();
  REQUIRE(outstanding.packets == 0);
  return outcome;
}

// WRITE of `length` octets with that ID and flags, and the right ICRC.
Octets write_with(uint16_t id, uint16_t flags, size_t length) {
  wire::Headers headers;
  headers.v4.id = id;
  headers.v4.flags_fragment = flags;
  headers.v4.ttl = 64;
  headers.v4.protocol = 17;
  headers.v4.src = {10, 0, 0, 1};
  headers.v4.dst = {10, 0, 0, 2};
  headers.udp.src_port = 0xc123;
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.opcode = wire::Opcode::kRcWriteOnly;
  headers.bth.psn = 77;
  headers.reth.dma_len = static_cast<uint32_t>(length);
  wire::finish_lengths(headers, length);
  Octets packet(wire::kMaxHeaderLen);
  packet.resize(wire::emit(headers, packet));
  size_t header_len = packet.size();
  packet.resize(header_len + length);
  fill(std::span(packet).subspan(header_len), length);
  packet.resize(header_len + (length + 3) / 4 * 4);
  std::span<const uint8_t> all(packet);
  uint32_t icrc = wire::icrc(all.first(header_len), false, all.subspan(header_len), {});
  packet.resize(packet.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(packet).last(wire::kIcrcLen), icrc);
  return packet;
}

}  // namespace

TEST_CASE("icrc solver: every IP ID is found, with DF and without, at every length") {
  Rng rng(3, "icrc solver");
  std::vector<uint16_t> ids = {0, 1, 0xff, 0x100, 0x8000, 0xffff};
  for (int i = 0; i < 20; ++i) ids.push_back(static_cast<uint16_t>(rng.next()));
  for (size_t length : {0, 1, 4, 255, 1024, 4095, 4096}) {
    for (uint16_t id : ids) {
      for (uint16_t flags : {0x4000, 0}) {
        Octets packet = write_with(id, flags, length);
        Outcome outcome = through_a_socket(packet);
        REQUIRE(outcome.taken);
        bool as_it_is = id == 0 && flags == 0x4000;
        REQUIRE(outcome.verdict == (as_it_is ? Verdict::kRight : Verdict::kSolved));
        REQUIRE(outcome.bytes == packet);
      }
    }
  }
}

TEST_CASE("icrc solver: an IP ID that is the place among merged datagrams, or 0, is right") {
  for (uint16_t place : {1, 7, 300}) {
    for (uint16_t id : {0, 1, 7, 300, 0xffff}) {
      for (uint16_t flags : {0x4000, 0}) {
        Octets packet = write_with(id, flags, 1024);
        Outcome outcome = through_a_socket(packet, place);
        bool expected = flags == 0x4000 && (id == 0 || id == place);
        REQUIRE(outcome.verdict == (expected ? Verdict::kRight : Verdict::kSolved));
        REQUIRE(outcome.bytes == packet);
      }
    }
  }
}

TEST_CASE("icrc solver: damage that no ID explains is passed on unchanged") {
  Octets packet = write_with(0, 0x4000, 1024);
  size_t damaged = 0, unseen = 0;
  Rng rng(5, "damage");
  for (int i = 0; i < 4000; ++i) {
    Octets broken = packet;
    size_t at = wire::kIpv4Len + wire::kUdpLen + wire::kBthLen + 16 + rng.below(1024);
    broken[at] ^= static_cast<uint8_t>(1 + rng.below(255));
    broken[at - 9] ^= static_cast<uint8_t>(1 + rng.below(255));
    Outcome outcome = through_a_socket(broken);
    REQUIRE(outcome.taken);
    if (outcome.verdict == Verdict::kDamaged) ++damaged;
    if (outcome.verdict != Verdict::kDamaged) ++unseen;
    if (outcome.verdict == Verdict::kDamaged) REQUIRE(outcome.bytes == broken);
  }
  // 15 bits of check remain: one of 32768 would pass.
  REQUIRE(damaged > 3990);
  REQUIRE(unseen < 10);
}

TEST_CASE("icrc solver: Soft-RoCE's packets come out of a socket byte for byte") {
  auto golden = golden_packets();
  size_t solved = 0, v6 = 0;
  for (const Octets& packet : golden) {
    Outcome outcome = through_a_socket(packet);
    REQUIRE(outcome.taken);
    REQUIRE(outcome.verdict != Verdict::kDamaged);
    solved += outcome.verdict == Verdict::kSolved;
    bool ipv6 = packet[0] >> 4 == 6;
    v6 += ipv6;
    // TTL, flow label and header checksum are the kernel's; the UDP checksum is ignored.
    Octets wanted(packet.begin(), packet.begin() + static_cast<long>(outcome.bytes.size()));
    if (ipv6) {
      for (size_t at : {1, 2, 3, 7}) wanted[at] = outcome.bytes[at];
    } else {
      wanted[8] = outcome.bytes[8];
      wanted[10] = outcome.bytes[10];
      wanted[11] = outcome.bytes[11];
    }
    REQUIRE(outcome.bytes == wanted);
  }
  REQUIRE(golden.size() == 193);
  REQUIRE(v6 == 26);
  REQUIRE(solved > 100);
}

TEST_CASE("datagrams: a datagram that is no RoCEv2 packet is refused") {
  Outstanding outstanding;
  PacketPool pool(outstanding);
  IcrcSolver solver;
  UdpAddress from{mapped_ipv4({10, 0, 0, 1}), 0xc000}, to{mapped_ipv4({10, 0, 0, 2}), 4791};
  for (size_t length : {0, 1, 15, 16, 17, 60, 4143, 4144, 9000, 65000}) {
    for (uint8_t byte : {0x00, 0xff}) {
      Octets room(kDatagramHeadroom + length, byte);
      Verdict verdict{};
      PacketPtr packet = packet_of_datagram(pool, solver, from, to, 0, 0, room, verdict);
      // Sixteen octets of 0 are an RC SEND First without payload, with a wrong ICRC.
      if (packet) REQUIRE(verdict == Verdict::kDamaged);
      if (length < 16 || length > kMaxDatagram || byte == 0xff) REQUIRE(packet == nullptr);
    }
  }
  REQUIRE(outstanding.packets == 0);
}
