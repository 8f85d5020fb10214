// Frames from outside: packets that the kernel's Soft-RoCE sent, intact and damaged, arrive at a
// port as bytes.
#include <algorithm>
#include <catch2/catch.hpp>

#include "rdma/wire/icrc.h"
#include "test/rdma/wire/golden.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Octets = std::vector<uint8_t>;

wire::Parsed parsed_of(const Octets& packet) {
  wire::Parsed parsed;
  REQUIRE(wire::parse(packet, parsed) == wire::ParseError::kNone);
  return parsed;
}

// The same packet for another queue pair and another region, its ICRC made anew.
Octets readdressed(const Octets& packet, uint32_t qpn, uint64_t va, uint32_t rkey) {
  wire::Parsed parsed = parsed_of(packet);
  parsed.headers.bth.dest_qpn = qpn;
  parsed.headers.reth.va = va;
  parsed.headers.reth.rkey = rkey;
  Octets headers(wire::kMaxHeaderLen);
  headers.resize(wire::emit(parsed.headers, headers));
  std::span<const uint8_t> behind = std::span(packet).subspan(parsed.header_len);
  auto payload = behind.first(parsed.payload_len);
  auto pad = behind.subspan(parsed.payload_len, parsed.pad_len);
  Octets out = headers;
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), pad.begin(), pad.end());
  out.resize(out.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(out).last(wire::kIcrcLen),
                   wire::icrc(headers, parsed.headers.is_ipv6, payload, pad));
  return out;
}

// A device with the address of a golden packet's receiver, cabled to one with the sender's.
Topology golden_topology(const wire::Headers& headers) {
  Topology topology = default_topology();
  if (!headers.is_ipv6) {
    topology.devices[0].ports[0].ipv4 = headers.v4.src;
    topology.devices[1].ports[0].ipv4 = headers.v4.dst;
  }
  return topology;
}

void deliver(World& world, const Octets& bytes) {
  world.device("mb_1").port().receive_bytes(bytes, world.scheduler.now());
}

}  // namespace

TEST_CASE("frames: Soft-RoCE's WRITE messages are placed and acknowledged") {
  std::vector<Octets> golden = golden_packets();
  size_t messages = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    wire::Parsed first = parsed_of(golden[i]);
    wire::Opcode opcode = first.headers.bth.opcode;
    bool begins = opcode == wire::Opcode::kRcWriteFirst || opcode == wire::Opcode::kRcWriteOnly;
    if (!begins || first.headers.is_ipv6) continue;
    // The packets of the same stream that follow, up to the message's end.
    std::vector<Octets> message{golden[i]};
    Octets data;
    uint32_t psn = first.headers.bth.psn;
    for (size_t j = i + 1; opcode == wire::Opcode::kRcWriteFirst && j < golden.size(); ++j) {
      wire::Parsed next = parsed_of(golden[j]);
      if (next.headers.bth.dest_qpn != first.headers.bth.dest_qpn ||
          next.headers.bth.psn != ((psn + message.size()) & 0xffffff)) {
        continue;
      }
      message.push_back(golden[j]);
      if (wire::opcode_info(next.headers.bth.opcode).last) break;
    }
    World world(1, golden_topology(first.headers));
    QpAttributes attributes;
    attributes.path_mtu = message.size() > 1 ? first.payload_len : 4096;
    attributes.send_psn = psn;  // of the near end, and expected by the far end
    Connection connection(world, 1 << 20, attributes);
    std::vector<std::pair<uint8_t, uint32_t>> answers;
    Meddler back(world, world.link("sw_0-mb_0"), 1, {});
    back.script = [&](const wire::Parsed& parsed, Packet&) {
      answers.emplace_back(parsed.headers.aeth.syndrome, parsed.headers.bth.psn);
      return true;
    };
    for (const Octets& packet : message) {
      wire::Parsed parsed = parsed_of(packet);
      auto payload = std::span(packet).subspan(parsed.header_len, parsed.payload_len);
      data.insert(data.end(), payload.begin(), payload.end());
      deliver(world, readdressed(packet, connection.far->number(), connection.far_address,
                                 connection.far_key));
    }
    bool immediate = wire::opcode_info(parsed_of(message.back()).headers.bth.opcode).has_imm;
    if (data.size() != first.headers.reth.dma_len || immediate) continue;
    world.scheduler.run_until(kMillisecond);
    REQUIRE_FALSE(answers.empty());
    CHECK(answers.back().first == 0x1f);
    CHECK(answers.back().second == ((psn + message.size() - 1) & 0xffffff));
    auto placed = bytes_of(*connection.far_memory).first(data.size());
    CHECK(std::equal(data.begin(), data.end(), placed.begin()));
    ++messages;
  }
  CHECK(messages >= 3);
}

TEST_CASE("frames: every damaged packet is counted as a drop") {
  std::vector<Octets> golden = golden_packets();
  World world;
  Connection connection(world, 1 << 20);
  Rng rng(23, "hostile frames");
  PortCounters& counters = world.counters("mb_1");
  constexpr uint64_t kRounds = 30'000;
  for (uint64_t round = 0; round < kRounds; ++round) {
    Octets bytes = golden[rng.below(golden.size())];
    if (rng.chance(0.5)) {
      bytes = readdressed(bytes, connection.far->number(), connection.far_address + rng.below(64),
                          connection.far_key);
    }
    for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
      bytes[rng.below(bytes.size())] ^= static_cast<uint8_t>(1 + rng.below(255));
    }
    if (rng.chance(0.1)) bytes.resize(rng.below(bytes.size()));
    if (rng.chance(0.05)) bytes.resize(bytes.size() + rng.below(9000));
    deliver(world, bytes);
  }
  CHECK(counters.port_rcv_packets.get() > 1000);  // well-formed as far as a port can tell
  CHECK(counters.port_rcv_errors.get() > 1000);
  // The addresses are unknown in this fabric: every packet ends in a drop counter.
  CHECK(counters.port_rcv_errors.get() + counters.rx_icrc_encapsulated.get() +
            counters.rx_unknown_qp.get() + counters.rx_wrong_pkey.get() +
            counters.rx_mads_discarded.get() ==
        kRounds);
  CHECK(connection.far->state() == QpState::kRts);
  CHECK_FALSE(world.outstanding.any());
}

TEST_CASE("frames: valid packets with hostile contents harm only their own queue pair") {
  World world;
  Connection connection(world, 64 * 1024), bystander(world, 64 * 1024);
  Rng rng(29, "hostile contents");
  int errors = 0;
  for (int round = 0; round < 5'000; ++round) {
    auto victim = std::make_unique<Connection>(world, 4096);
    for (int i = 0; i < 8; ++i) {
      wire::Headers headers =
          victim->near->headers_to(victim->near->attributes().path, victim->far->number());
      headers.bth.opcode = static_cast<wire::Opcode>(rng.below(0x20));  // reserved ones too
      headers.bth.psn =
          static_cast<uint32_t>(rng.chance(0.7) ? static_cast<uint64_t>(i) : rng.below(1 << 24));
      headers.bth.ack_req = rng.chance(0.5);
      headers.reth = {rng.chance(0.7) ? victim->far_address + rng.below(5000) : rng.next(),
                      rng.chance(0.7) ? victim->far_key : static_cast<uint32_t>(rng.next()),
                      static_cast<uint32_t>(rng.chance(0.8) ? rng.below(5000) : rng.next())};
      headers.aeth = {static_cast<uint8_t>(rng.next()), static_cast<uint32_t>(rng.below(1 << 24))};
      size_t length = wire::opcode_info(headers.bth.opcode).has_payload ? rng.below(4097) : 0;
      wire::finish_lengths(headers, length);
      Octets bytes(wire::kMaxHeaderLen);
      bytes.resize(wire::emit(headers, bytes));
      Octets header_bytes = bytes, payload(length, 0xee), pad(headers.bth.pad_count, 0);
      uint32_t icrc = wire::icrc(header_bytes, headers.is_ipv6, payload, pad);
      bytes.insert(bytes.end(), payload.begin(), payload.end());
      bytes.insert(bytes.end(), pad.begin(), pad.end());
      bytes.resize(bytes.size() + wire::kIcrcLen);
      wire::store_icrc(std::span(bytes).last(wire::kIcrcLen), icrc);
      deliver(world, bytes);
    }
    world.scheduler.run_until(world.scheduler.now() + 20 * kMicrosecond);
    errors += victim->far->state() == QpState::kError;
  }
  CHECK(errors > 1000);
  auto untouched = bytes_of(*bystander.far_memory);
  CHECK(std::all_of(untouched.begin(), untouched.end(), [](uint8_t byte) { return byte == 0; }));
  bystander.post(bystander.write(1, 0, 1000));
  REQUIRE(world.run_idle());
  CHECK(Connection::poll(bystander.near_cq).at(0).status == WcStatus::kSuccess);
}
