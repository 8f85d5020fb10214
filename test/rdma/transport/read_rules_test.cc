// Rules of the transport for READs and atomics, one per row.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Watch::Script drop_once(wire::Opcode opcode) {
  auto dropped = std::make_shared<bool>(false);
  return [=](const wire::Parsed& parsed, Packet&) {
    return parsed.headers.bth.opcode == opcode && !std::exchange(*dropped, true);
  };
}

void reads_of_every_length() {
  Pair pair;
  fill(pair.far_bytes(), 6);
  uint64_t at = 0;
  for (uint32_t length : {0u, 1u, 255u, 256u, 257u, 512u, 4096u, 10'001u}) {
    pair.link.post(pair.link.read(length, at, length));
    REQUIRE(pair.world.run_idle());
    auto sent = pair.sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == WcStatus::kSuccess);
    CHECK(sent[0].opcode == WcOpcode::kRead);
    CHECK(sent[0].byte_len == length);
    CHECK(pair.same(at, at, length));
    at += length + 16;
  }
  CHECK(pair.far().rx_read_requests.get() == 8);
}

void atomics_compute() {
  Pair pair;
  pair.put(pair.far_bytes(), 80, 40);
  CHECK(pair.outcome(pair.link.fetch_add(1, 80, 2, 0)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.near_bytes(), 0) == 40);
  CHECK(pair.word(pair.far_bytes(), 80) == 42);
  SendRequest swap = pair.link.fetch_add(2, 80, 0, 8);
  swap.op = SendOp::kCompareSwap;
  swap.compare = 41;
  swap.swap_add = 7;
  CHECK(pair.outcome(swap) == WcStatus::kSuccess);
  CHECK(pair.word(pair.far_bytes(), 80) == 42);  // the value was not 41
  swap.compare = 42;
  CHECK(pair.outcome(swap) == WcStatus::kSuccess);
  CHECK(pair.word(pair.near_bytes(), 8) == 42);
  CHECK(pair.word(pair.far_bytes(), 80) == 7);
  CHECK(pair.outcome(pair.link.fetch_add(3, 80, ~uint64_t{0}, 16)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.far_bytes(), 80) == 6);  // the sum wraps
  CHECK(pair.far().rx_atomic_requests.get() == 4);
}

void atomics_are_aligned() {
  for (uint64_t off = 1; off < 8; ++off) {
    Pair pair;
    CHECK(pair.outcome(pair.link.fetch_add(1, 80 + off, 1, 0)) == WcStatus::kRemoteInvalidRequest);
  }
}

void atomics_once() {
  // The answer is lost; the duplicate is answered from the responder's record of the atomic.
  Pair pair;
  Watch watch(pair, "sw_0-mb_0", drop_once(wire::Opcode::kRcAtomicAck));
  pair.put(pair.far_bytes(), 80, 10);
  CHECK(pair.outcome(pair.link.fetch_add(1, 80, 1, 0)) == WcStatus::kSuccess);
  CHECK(pair.word(pair.near_bytes(), 0) == 10);
  CHECK(pair.word(pair.far_bytes(), 80) == 11);
  CHECK(pair.far().duplicate_request.get() == 1);
  CHECK(pair.far().rx_atomic_requests.get() == 1);
}

void reads_resume() {
  // Each part of the response is lost once. The rest is requested with PSN, address and length
  // advanced.
  using wire::Opcode;
  for (Opcode lost :
       {Opcode::kRcReadResponseFirst, Opcode::kRcReadResponseMiddle, Opcode::kRcReadResponseLast}) {
    INFO(wire::opcode_info(lost).name);
    Pair pair;
    fill(pair.far_bytes(), 6);
    Watch back(pair, "sw_0-mb_0", drop_once(lost));
    std::vector<wire::Headers> asked;
    Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
      asked.push_back(parsed.headers);
      return false;
    });
    CHECK(pair.outcome(pair.link.read(1, 0, 256 * 10)) == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, 256 * 10));
    REQUIRE(asked.size() == 2);
    uint32_t skipped = asked[1].bth.psn - asked[0].bth.psn;
    uint32_t expected = lost == Opcode::kRcReadResponseFirst    ? 0
                        : lost == Opcode::kRcReadResponseMiddle ? 1
                                                                : 9;
    CHECK(skipped == expected);
    CHECK(asked[1].reth.va == asked[0].reth.va + 256 * skipped);
    CHECK(asked[1].reth.dma_len == 256 * (10 - skipped));
    bool told = lost != Opcode::kRcReadResponseLast;  // by a later response
    CHECK(pair.near().implied_nak_seq_err.get() == told);
    CHECK(pair.near().local_ack_timeout_err.get() == !told);
  }
}

void implied_naks() {
  // An acknowledgement of a later request shows that the READ's response was lost.
  Pair pair;
  Watch back(pair, "sw_0-mb_0", drop_once(wire::Opcode::kRcReadResponseOnly));
  pair.link.post(pair.link.read(1, 0, 100));
  pair.link.post(pair.link.write(2, 1000, 100));
  REQUIRE(pair.world.run_idle());
  auto sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].wr_id == 1);
  for (const Completion& one : sent) CHECK(one.status == WcStatus::kSuccess);
  CHECK(pair.near().implied_nak_seq_err.get() == 1);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

void depth_of_reads() {
  QpAttributes attributes = quick_attributes();
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 2;
  Pair pair(attributes);
  int open = 0, most = 0;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.opcode == wire::Opcode::kRcReadRequest) most = std::max(most, ++open);
    return false;
  });
  Watch back(pair, "mb_1-sw_0", [&](const wire::Parsed& parsed, Packet&) {
    open -= parsed.headers.bth.opcode == wire::Opcode::kRcReadResponseLast;
    return false;
  });
  for (uint64_t i = 0; i < 10; ++i) pair.link.post(pair.link.read(i, i * 1000, 1000));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().size() == 10);
  CHECK(most == 2);
}

void too_many_reads() {
  World world;
  QpAttributes attributes = quick_attributes();
  attributes.max_rd_atomic = 8;
  attributes.max_dest_rd_atomic = 1;
  Connection link(world, kPairArea, attributes);
  for (uint64_t i = 0; i < 4; ++i) link.post(link.read(i, i * 9000, 9000));
  REQUIRE(world.run_idle());
  auto sent = Connection::poll(link.near_cq);
  REQUIRE(sent.size() == 4);
  // The first had its place, and its answer comes before the refusal of the second.
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kRemoteInvalidRequest);
  CHECK(sent[2].status == WcStatus::kFlushed);
}

void no_reads_at_all() {
  QpAttributes attributes = quick_attributes();
  attributes.max_rd_atomic = 0;
  Pair pair(attributes);
  CHECK(pair.outcome(pair.link.read(1, 0, 100)) == WcStatus::kLocalQpOperationError);
}

void local_rights() {
  {  // a READ writes into the near memory
    Pair pair;
    SendRequest read = pair.link.read(1, 0, 100);
    uint32_t key = *pair.link.near_device.memory().add(pair.link.near_memory, 0x7000000, kPairArea,
                                                       Connection::kPd, 0);
    read.sges = Sge{0x7000000, 100, key};
    CHECK(pair.outcome(read) == WcStatus::kLocalProtectionError);
  }
  Pair pair;
  SendRequest add = pair.link.fetch_add(1, 80, 1, 0);
  add.sges = Sge{pair.link.near_address, 16, pair.link.near_key};
  CHECK(pair.outcome(add) == WcStatus::kLocalLengthError);
}

void bad_responses() {
  Pair pair;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet& packet) {
    if (parsed.headers.bth.opcode == wire::Opcode::kRcReadResponseMiddle) {
      packet.payload.length -= 4;
      wire::Headers headers = parsed.headers;
      wire::finish_lengths(headers, packet.payload.length);
      wire::emit(headers, packet.header);
    }
    return false;
  });
  CHECK(pair.outcome(pair.link.read(1, 0, 256 * 4)) == WcStatus::kBadResponse);
}

void memory_that_goes_before_the_answer() {
  Pair pair;
  bool gone = false;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet&) {
    bool response = wire::opcode_info(parsed.headers.bth.opcode).is_read_response;
    if (response && !std::exchange(gone, true)) {
      REQUIRE(pair.link.far_device.memory().remove(pair.link.far_key));
    }
    return false;
  });
  CHECK(pair.outcome(pair.link.read(1, 0, 256 * 200)) == WcStatus::kRemoteAccessError);
  CHECK(pair.link.far->state() == QpState::kError);
}

const Rule kRules[] = {
    {"9.4.4", "a READ brings any number of bytes", reads_of_every_length},
    {"9.4.5", "atomics compute on 64 bits and return what was there", atomics_compute},
    {"9.4.5", "an atomic's address is a multiple of 8", atomics_are_aligned},
    {"9.4.5", "an atomic asked for again is answered again, not executed again", atomics_once},
    {"9.7.3", "a half-answered READ is asked for its rest", reads_resume},
    {"9.7.6", "a later answer implies a NAK for a lost response", implied_naks},
    {"9.7.3", "no more READs are under way than agreed", depth_of_reads},
    {"9.7.4.1", "more READs than agreed are an invalid request", too_many_reads},
    {"9.7.3", "without initiator depth a READ is a local QP operation error", no_reads_at_all},
    {"10.6.4", "what a READ or atomic writes into must be writable, and fit", local_rights},
    {"9.9.2", "a response that does not fit is a bad response", bad_responses},
    {"9.9.3", "memory that goes before its READ is answered is a remote access error",
     memory_that_goes_before_the_answer},
};

}  // namespace

TEST_CASE("rules: each rule for READs and atomics holds") {
  check_rules(kRules);
}
