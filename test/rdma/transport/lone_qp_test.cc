// Requesters and responders without a device, links or a fabric: their answers to packets that a
// test hands them.
#include <catch2/catch.hpp>
#include <vector>

#include "test/rdma/transport/lone.h"

using namespace rocefs;
using namespace rocefs::test;

// IBTA 9.7.5.2.8: all packets from the missing one on are sent again.
TEST_CASE(
    "lone requester: a NAK for a sequence error takes it back to the packet that is missing") {
  Lone lone;
  for (uint8_t i = 0; i < 4; ++i) lone.write(static_cast<uint8_t>(10 + i), i);
  std::vector<Packet*> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(lone.near.data());
  CHECK(lone.near.data() == nullptr);
  lone.request(sent[0]);
  lone.lose(sent[1]);
  lone.request(sent[2]);
  CHECK(lone.answer().syndrome == aeth::kNakSequence);
  CHECK(lone.psn == 1);
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
  lone.lose(sent[3]);
  for (uint32_t psn = 1; psn < 4; ++psn) {
    Packet* again = lone.near.data();
    REQUIRE(again);
    CHECK(again->transport().psn() == psn);
    lone.request(again);
  }
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  CHECK(lone.near.completions() == std::vector<WcStatus>(3, WcStatus::kSuccess));
  CHECK(std::equal(lone.far.bytes.begin(), lone.far.bytes.begin() + 4, lone.near.bytes.begin()));
  CHECK(lone.near.host.port.counters().packet_seq_err.get() == 1);
  CHECK(lone.far.host.port.counters().out_of_sequence.get() == 1);
}

// IBTA 9.7.5.1.3: the acknowledgement may have been lost.
TEST_CASE("lone responder: a duplicate WRITE is acknowledged again, and not placed again") {
  Lone lone;
  lone.write(1, 0);
  Packet* first = lone.near.data();
  Packet* duplicate = copy_of(lone.pool, *first);
  lone.request(first);
  CHECK(lone.far.bytes[0] == 1);
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  lone.far.bytes[0] = 7;
  lone.request(duplicate);
  CHECK(lone.far.bytes[0] == 7);
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  CHECK(lone.psn == 0);
  CHECK(lone.far.host.port.counters().duplicate_request.get() == 1);
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
}

TEST_CASE("lone requester: without an answer it sends again, and gives up after its retries") {
  Lone lone;
  lone.write(1, 0);
  int sent = 0;
  do {
    while (Packet* packet = lone.near.data()) {
      lone.lose(packet);
      ++sent;
    }
  } while (lone.scheduler.run_one(60 * kSecond));
  CHECK(sent == 1 + 7);  // QpAttributes::retry_count
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kRetryExceeded});
  CHECK(lone.near.qp.state() == QpState::kError);
  CHECK(lone.near.host.port.counters().local_ack_timeout_err.get() == 8);
}
