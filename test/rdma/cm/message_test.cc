#include "rdma/cm/message.h"

#include "core/base/rng.h"
#include "rdma/wire/packet.h"
#include "test/rdma/wire/golden.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Messages of the capture, from the MAD header on.
std::vector<Bytes> golden_mads() {
  std::vector<Bytes> mads;
  for (const Bytes& packet : golden_packets()) {
    wire::Parsed parsed;
    REQUIRE(wire::parse(packet, parsed) == wire::ParseError::kNone);
    if (parsed.headers.bth.dest_qpn != 1) continue;
    auto first = packet.begin() + parsed.header_len;
    mads.emplace_back(first, first + parsed.payload_len);
  }
  return mads;
}

}  // namespace

TEST_CASE("cm: Soft-RoCE's CM messages parse and are emitted again octet for octet") {
  std::vector<Bytes> mads = golden_mads();
  REQUIRE(mads.size() == 5);
  std::string kinds;
  for (const Bytes& mad : mads) {
    auto parsed = cm::parse(mad);
    REQUIRE(parsed);
    kinds += std::string(cm::kNames[parsed->message.index()]) + " ";
    cm::Mad again = cm::emit(parsed->tid, parsed->message);
    CHECK(Bytes(again.begin(), again.end()) == mad);
  }
  CHECK(kinds == "req rep rtu dreq drep ");

  auto req = std::get<cm::Req>(cm::parse(mads[0])->message);
  CHECK(req.local_id == 0x8df21d1a);
  CHECK(req.service_id == 0x0000000001060000 + 0x490c);
  CHECK(req.qpn == 0x1d);
  CHECK(req.starting_psn == 0xa1b90c);
  CHECK(req.remote_response_timeout == 20);
  CHECK(req.max_cm_retries == 15);
  CHECK(req.rnr_retry_count == 7);
  CHECK(req.path_mtu == 3);
  CHECK(req.primary.local_gid == mapped_ipv4({10, 77, 0, 12}));
  CHECK(req.primary.remote_gid == mapped_ipv4({10, 77, 0, 11}));
  CHECK(req.primary.local_ack_timeout == 19);
  CHECK(req.primary.hop_limit == 64);
  auto header = cm::parse_ip_header(req.private_data);
  REQUIRE(header);
  CHECK(header->source_port == 0xb024);
  CHECK(header->source == req.primary.local_gid);
  CHECK(header->destination == req.primary.remote_gid);
  cm::PrivateData<92> written{};
  cm::emit_ip_header(*header, written);
  CHECK(written == req.private_data);

  auto rep = std::get<cm::Rep>(cm::parse(mads[1])->message);
  CHECK(rep.remote_id == req.local_id);
  CHECK(rep.starting_psn == 0xc86c30);
  CHECK(rep.target_ack_delay == 15);
  CHECK(std::get<cm::Dreq>(cm::parse(mads[3])->message).remote_qpn == 0x1d);
}

TEST_CASE("cm: every message survives parsing and emitting, with all its fields") {
  // Reserved octets are written as zero.
  Rng rng(1, "messages");
  for (uint16_t attribute = 0x10; attribute <= 0x18; ++attribute) {
    cm::Mad mad{1, 7, 2, 3};
    for (size_t i = 8; i < mad.size(); ++i) mad[i] = static_cast<uint8_t>(rng.next());
    mad[16] = 0;
    mad[17] = static_cast<uint8_t>(attribute);
    auto first = cm::parse(mad);
    REQUIRE(first);
    cm::Mad written = cm::emit(first->tid, first->message);
    auto second = cm::parse(written);
    REQUIRE(second);
    CHECK(cm::emit(second->tid, second->message) == written);
    size_t kept = 0;
    for (size_t i = 24; i < mad.size(); ++i) kept += written[i] == mad[i];
    CHECK(kept >= 200);
  }
}

TEST_CASE("cm: a MAD of another class, version or attribute does not parse") {
  cm::Mad mad = cm::emit(1, cm::Rtu{2, 3, {}});
  REQUIRE(cm::parse(mad));
  CHECK_FALSE(cm::parse(std::span(mad).first(255)));
  for (auto [at, value] : {std::pair{0, 2}, {1, 3}, {2, 1}, {3, 1}, {16, 1}, {17, 0x19}, {17, 0}}) {
    cm::Mad other = mad;
    other[static_cast<size_t>(at)] = static_cast<uint8_t>(value);
    CHECK_FALSE(cm::parse(other));
  }
}
