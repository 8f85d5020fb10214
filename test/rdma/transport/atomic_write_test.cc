// ATOMIC WRITE (IBTA A19): eight octets, at once, in the order of requests, answered by an empty
// READ response.
#include <catch2/catch.hpp>

#include "test/rdma/transport/lone.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;
using wire::Opcode;

namespace {

SendRequest atomic_write(const Pair& pair, uint64_t id, uint64_t offset) {
  SendRequest request = pair.link.write(id, offset, 8);
  request.op = SendOp::kAtomicWrite;
  return request;
}

void writes_eight_octets() {
  Pair pair;
  fill(pair.far_bytes(), 6);
  std::vector<uint8_t> before(pair.far_bytes().begin(), pair.far_bytes().end());
  wire::Headers asked, answered;
  int requests = 0, answers = 0, answered_octets = 0;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet& packet) {
    asked = parsed.headers;
    requests += packet.payload.length == 8;
    return false;
  });
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet& packet) {
    answered = parsed.headers;
    ++answers;
    answered_octets += packet.payload.length;
    return false;
  });
  pair.link.post(atomic_write(pair, 1, 80));
  pair.run();
  std::vector<Completion> sent = pair.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[0].opcode == WcOpcode::kAtomicWrite);
  CHECK(requests == 1);
  CHECK(asked.bth.opcode == Opcode{0x1d});
  CHECK(asked.reth.va == pair.link.far_address + 80);
  CHECK(asked.reth.rkey == pair.link.far_key);
  CHECK(asked.reth.dma_len == 8);
  CHECK(answers == 1);
  CHECK(answered.bth.opcode == Opcode::kRcReadResponseOnly);
  CHECK(answered.bth.psn == asked.bth.psn);
  CHECK(answered.aeth.syndrome == aeth::kAckUnlimited);
  CHECK(answered.aeth.msn == 1);
  CHECK(answered_octets == 0);
  CHECK(pair.same(80, 80, 8));
  CHECK(std::equal(before.begin(), before.begin() + 80, pair.far_bytes().begin()));
  CHECK(std::equal(before.begin() + 88, before.end(), pair.far_bytes().begin() + 88));
  CHECK(pair.far().rx_atomic_requests.get() == 1);
}

void is_aligned() {
  for (uint64_t off = 1; off < 8; ++off) {
    Pair pair;
    CHECK(pair.outcome(atomic_write(pair, 1, 80 + off)) == WcStatus::kRemoteInvalidRequest);
    CHECK(pair.word(pair.far_bytes(), 80) == 0);
    CHECK(pair.word(pair.far_bytes(), 88) == 0);
  }
}

void has_eight_octets() {
  for (uint32_t length : {0u, 7u, 9u, 16u}) {
    Pair pair;
    SendRequest request = atomic_write(pair, 1, 80);
    request.sges = Sge{pair.link.near_address, length, pair.link.near_key};
    CHECK(pair.outcome(request) == WcStatus::kLocalLengthError);
  }
  Pair pair;  // of two places
  SendRequest request = atomic_write(pair, 1, 80);
  request.sges = Sge{pair.link.near_address + 80, 3, pair.link.near_key};
  request.sges.add({pair.link.near_address + 83, 5, pair.link.near_key});
  CHECK(pair.outcome(request) == WcStatus::kSuccess);
  CHECK(pair.same(80, 80, 8));
}

void reads_near_memory_alone() {
  Pair pair;
  SendRequest request = atomic_write(pair, 1, 80);
  uint32_t key = *pair.link.near_device.memory().add(pair.link.near_memory, 0x7000000, kPairArea,
                                                     Connection::kPd, 0);
  request.sges = Sge{0x7000000 + 80, 8, key};
  CHECK(pair.outcome(request) == WcStatus::kSuccess);
  CHECK(pair.same(80, 80, 8));
  request.sges = Sge{0x7000000 + 80, 8, key ^ 1};
  CHECK(pair.outcome(request) == WcStatus::kLocalProtectionError);
}

void is_done_once() {
  // The answer is lost, and somebody writes there before the request comes again.
  Pair pair;
  bool lost = false;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed&, Packet&) {
    if (std::exchange(lost, true)) return false;
    CHECK(pair.same(80, 80, 8));
    pair.put(pair.far_bytes(), 80, 77);
    return true;
  });
  CHECK(pair.outcome(atomic_write(pair, 1, 80)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.far_bytes(), 80) == 77);
  CHECK(pair.far().duplicate_request.get() == 1);
  CHECK(pair.far().rx_atomic_requests.get() == 1);
}

void implies_naks() {
  // An answer to a later request shows that the answer to the first was lost (implied NAK).
  Pair pair;
  bool lost = false;
  Watch back(pair, "sw_0-mb_0",
             [&](const wire::Parsed&, Packet&) { return !std::exchange(lost, true); });
  pair.link.post(atomic_write(pair, 1, 80));
  pair.link.post(pair.link.write(2, 1000, 100));
  pair.run();
  std::vector<Completion> sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].wr_id == 1);
  for (const Completion& one : sent) CHECK(one.status == WcStatus::kSuccess);
  CHECK(pair.near().implied_nak_seq_err.get() == 1);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

void counts_as_an_atomic() {
  QpAttributes attributes = quick_attributes();
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 2;
  Pair pair(attributes);
  int open = 0, most = 0;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed&, Packet&) {
    most = std::max(most, ++open);
    return false;
  });
  Watch back(pair, "mb_1-sw_0", [&](const wire::Parsed&, Packet&) {
    --open;
    return false;
  });
  for (uint64_t i = 0; i < 10; ++i) pair.link.post(atomic_write(pair, i, i * 8));
  pair.run();
  CHECK(pair.sent().size() == 10);
  CHECK(most == 2);
  attributes.max_rd_atomic = 0;
  Pair none(attributes);
  CHECK(none.outcome(atomic_write(none, 1, 80)) == WcStatus::kLocalQpOperationError);
}

void comes_after_what_is_before_it() {
  World world;
  auto slow = std::make_shared<SlowMemory>(world, kPairArea, 1);
  Connection link(world, kPairArea, quick_attributes(), nullptr, slow);
  fill(bytes_of(*link.near_memory), 5);
  link.post(link.write(1, 0, 5000));
  SendRequest flag = link.write(2, 8000, 8);
  flag.op = SendOp::kAtomicWrite;
  link.post(flag);
  uint64_t value = 0;
  while (value == 0) {
    REQUIRE(world.scheduler.run_one(world.scheduler.now() + kSecond));
    std::memcpy(&value, slow->bytes.data() + 8000, sizeof value);
  }
  CHECK(std::equal(slow->bytes.begin(), slow->bytes.begin() + 5000,
                   bytes_of(*link.near_memory).begin()));
  REQUIRE(world.run_idle());
  CHECK(Connection::poll(link.near_cq).size() == 2);
}

// Bytes of the packet with another opcode, and the ICRC of it.
std::vector<uint8_t> with_opcode(Packet& packet, uint8_t opcode) {
  REQUIRE(materialize(packet));
  size_t behind = packet.wire_length() - packet.header_len - wire::kIcrcLen;
  std::span<const uint8_t> rest(packet.frame->bytes.data(), behind);
  std::vector<uint8_t> bytes(packet.header_bytes().begin(), packet.header_bytes().end());
  bytes[wire::kIpv4Len + wire::kUdpLen] = opcode;
  uint32_t icrc = wire::icrc(bytes, false, rest, {});
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  bytes.resize(bytes.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(bytes).last(wire::kIcrcLen), icrc);
  return bytes;
}

// The far end gets the request with an opcode that is reserved here, as ATOMIC WRITE is reserved
// for a NIC without it.
void is_refused_where_it_is_unknown() {
  Pair pair;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet& packet) {
    if (parsed.headers.bth.opcode != Opcode::kRcAtomicWrite) return false;
    std::vector<uint8_t> bytes = with_opcode(packet, 0x1e);
    pair.world.device("mb_1").port().receive_bytes(bytes, pair.world.scheduler.now());
    return true;
  });
  pair.link.post(pair.link.write(1, 1000, 100));
  pair.link.post(atomic_write(pair, 2, 80));
  pair.run();
  std::vector<Completion> sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kRemoteInvalidRequest);
  CHECK(pair.near().req_remote_invalid_request.get() == 1);
  CHECK(pair.far().port_rcv_errors.get() == 0);
  CHECK(pair.link.far->state() == QpState::kError);
  CHECK(pair.word(pair.far_bytes(), 80) == 0);
}

const Rule kRules[] = {
    {"A19", "it writes eight octets and is answered by an empty READ response",
     writes_eight_octets},
    {"A19", "its address is a multiple of 8", is_aligned},
    {"A19", "its payload is eight octets", has_eight_octets},
    {"A19", "its payload is only read", reads_near_memory_alone},
    {"A19", "asked for again it is answered again, not executed again", is_done_once},
    {"9.7.6", "a later answer implies a NAK for its lost response", implies_naks},
    {"9.7.3", "no more of them are under way than READs and atomics may be", counts_as_an_atomic},
    {"9.7.4.1.3", "a responder without it refuses it as an invalid request",
     is_refused_where_it_is_unknown},
    {"A19", "it is executed after the requests before it", comes_after_what_is_before_it},
};

// The far end's ACK packet with that syndrome for a request of the near end.
PacketPtr acknowledge_packet(Lone& lone, const Packet& request, uint8_t syndrome) {
  wire::Headers headers = Lone::headers_of(request);
  std::swap(headers.v4.src, headers.v4.dst);
  headers.bth.opcode = Opcode::kRcAck;
  headers.bth.dest_qpn = lone.near.qp.number();
  headers.aeth = {syndrome, 0};
  PacketPtr packet = lone.pool.acquire();
  Lone::rewrite(*packet, headers);
  return packet;
}

}  // namespace

TEST_CASE("rules: each rule for ATOMIC WRITE holds") {
  check_rules(kRules);
}

TEST_CASE("lone responder: a duplicate ATOMIC WRITE is answered again, and not executed again") {
  Lone lone;
  lone.near.bytes[8] = 1;
  REQUIRE(lone.near.qp.post(lone.eight(SendOp::kAtomicWrite, 8)));
  PacketPtr first = lone.near.data();
  REQUIRE(first);
  PacketPtr duplicate = copy_of(*first);
  lone.request(std::move(first));
  CHECK(lone.far.bytes[8] == 1);
  PacketPtr lost = lone.far.data();
  REQUIRE(lost);
  lost.reset();
  CHECK(lone.near.completions().empty());
  lone.far.bytes[8] = 7;
  lone.request(std::move(duplicate));
  CHECK(lone.far.bytes[8] == 7);
  PacketPtr again = lone.far.data();
  REQUIRE(again);
  CHECK(again->transport().opcode() == Opcode::kRcReadResponseOnly);
  CHECK(again->transport().psn() == 0);
  CHECK(again->payload.length == 0);
  lone.take(std::move(again));
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
}

TEST_CASE("lone responder: an ATOMIC WRITE of another length is an invalid request") {
  for (bool in_reth : {true, false}) {
    Lone lone;
    lone.near.bytes[8] = 1;
    REQUIRE(lone.near.qp.post(lone.eight(SendOp::kAtomicWrite, 8)));
    PacketPtr packet = lone.near.data();
    REQUIRE(packet);
    wire::Headers headers = Lone::headers_of(*packet);
    if (in_reth) headers.reth.dma_len = 16;
    if (!in_reth) packet->payload.length = 4;
    Lone::rewrite(*packet, headers);
    lone.request(std::move(packet));
    CHECK(lone.answer().syndrome == aeth::kNakInvalidRequest);
    CHECK(lone.far.bytes[8] == 0);
    CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kRemoteInvalidRequest});
    CHECK(lone.far.qp.state() == QpState::kError);
  }
}

TEST_CASE("lone responder: a reserved opcode is refused in its turn") {
  for (uint8_t opcode : {0x15, 0x18, 0x1c, 0x1e, 0x1f}) {
    Lone lone;
    lone.write(1, 0);
    REQUIRE(lone.near.qp.post(lone.eight(SendOp::kAtomicWrite, 8)));
    PacketPtr first = lone.near.data(), second = lone.near.data();
    REQUIRE(second);
    wire::Headers headers = Lone::headers_of(*second);
    headers.bth.opcode = Opcode{opcode};
    Lone::rewrite(*second, headers);
    // Ahead of its turn it only shows a gap.
    lone.request(copy_of(*second));
    CHECK(lone.answer().syndrome == aeth::kNakSequence);
    CHECK(lone.psn == 0);
    lone.request(std::move(first));
    lone.request(std::move(second));
    CHECK(lone.answer().syndrome == aeth::kNakInvalidRequest);
    CHECK(lone.psn == 1);
    CHECK(lone.near.completions() ==
          std::vector<WcStatus>{WcStatus::kSuccess, WcStatus::kRemoteInvalidRequest});
    CHECK(lone.far.qp.state() == QpState::kError);
  }
}

TEST_CASE("lone requester: an ACK alone does not answer an ATOMIC WRITE") {
  Lone lone;
  REQUIRE(lone.near.qp.post(lone.eight(SendOp::kAtomicWrite, 8)));
  PacketPtr packet = lone.near.data();
  REQUIRE(packet);
  lone.take(acknowledge_packet(lone, *packet, aeth::kAckUnlimited));
  CHECK(lone.near.completions().empty());
  lone.request(std::move(packet));
  PacketPtr again = lone.near.data();  // the ACK implied that the response was lost
  REQUIRE(again);
  CHECK(again->transport().opcode() == Opcode::kRcAtomicWrite);
  again.reset();
  lone.take(lone.far.data());
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
}

TEST_CASE("lone requester: a response with data, or an atomic's, does not answer ATOMIC WRITE") {
  for (bool data : {true, false}) {
    Lone lone;
    REQUIRE(lone.near.qp.post(lone.eight(SendOp::kAtomicWrite, 8)));
    PacketPtr request = lone.near.data();
    REQUIRE(request);
    PacketPtr packet = acknowledge_packet(lone, *request, aeth::kAckUnlimited);
    wire::Headers headers = Lone::headers_of(*packet);
    headers.bth.opcode = data ? Opcode::kRcReadResponseOnly : Opcode::kRcAtomicAck;
    if (data) {
      packet->payload = request->payload;
      packet->payload.length = 8;
    }
    Lone::rewrite(*packet, headers);
    lone.take(std::move(packet));
    request.reset();
    CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kBadResponse});
  }
}
