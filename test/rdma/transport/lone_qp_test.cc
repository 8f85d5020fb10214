// Requesters and responders without a device, links or a fabric: their answers to packets that a
// test hands them.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/rdma/transport/lone.h"

using namespace rocefs;
using namespace rocefs::test;

// IBTA 9.7.5.2.8: all packets from the missing one on are sent again.
TEST_CASE("lone requester: a sequence NAK makes it send again from the missing packet") {
  Lone lone;
  for (uint8_t i = 0; i < 4; ++i) lone.write(static_cast<uint8_t>(10 + i), i);
  std::vector<PacketPtr> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(lone.near.data());
  CHECK(lone.near.data() == nullptr);
  lone.request(std::move(sent[0]));
  sent[1].reset();  // lost
  lone.request(std::move(sent[2]));
  CHECK(lone.answer().syndrome == aeth::kNakSequence);
  CHECK(lone.psn == 1);
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
  sent[3].reset();
  for (uint32_t psn = 1; psn < 4; ++psn) {
    PacketPtr again = lone.near.data();
    REQUIRE(again);
    CHECK(again->transport().psn() == psn);
    lone.request(std::move(again));
  }
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  CHECK(lone.near.completions() == std::vector<WcStatus>(3, WcStatus::kSuccess));
  CHECK(std::equal(lone.far.bytes.begin(), lone.far.bytes.begin() + 4, lone.near.bytes.begin()));
  CHECK(lone.near.host.port.counters().packet_seq_err.get() == 1);
  CHECK(lone.far.host.port.counters().out_of_sequence.get() == 1);
}

// IBTA 9.7.5.2.8: the far end drops them silently, and they are sent again.
TEST_CASE("lone responder: packets behind an RNR NAK are no gap, and those behind a lost one are") {
  Lone lone;
  for (int i = 0; i < 3; ++i) REQUIRE(lone.near.qp.post(lone.eight(SendOp::kSend, 0)));
  for (int i = 0; i < 3; ++i) lone.request(lone.near.data());
  CHECK(aeth::kind_of(lone.answer().syndrome) == aeth::Kind::kRnr);
  CHECK_FALSE(lone.far.qp.responder().emit_acknowledge());
  const PortCounters& far = lone.far.host.port.counters();
  CHECK(far.out_of_buffer.get() == 1);
  CHECK(far.out_of_sequence.get() == 0);
  ReceiveRequest receive;
  receive.sges = Sge{1000, 100, lone.far.key};
  for (int i = 0; i < 3; ++i) REQUIRE(lone.far.qp.post(receive));
  REQUIRE(lone.scheduler.run_one(60 * kSecond));
  lone.request(lone.near.data());
  (void)lone.near.data();  // lost
  lone.request(lone.near.data());
  CHECK(lone.answer().syndrome == aeth::kNakSequence);
  CHECK(far.out_of_sequence.get() == 1);
}

// IBTA 9.7.5.1.3: the acknowledgement may have been lost.
TEST_CASE("lone responder: a duplicate WRITE is acknowledged again and not placed again") {
  Lone lone;
  lone.write(1, 0);
  PacketPtr first = lone.near.data();
  PacketPtr duplicate = copy_of(*first);
  lone.request(std::move(first));
  CHECK(lone.far.bytes[0] == 1);
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  lone.far.bytes[0] = 7;
  lone.request(std::move(duplicate));
  CHECK(lone.far.bytes[0] == 7);
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  CHECK(lone.psn == 0);
  CHECK(lone.far.host.port.counters().duplicate_request.get() == 1);
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
}

TEST_CASE("lone requester: an unanswered request is sent again, and given up after its retries") {
  Lone lone;
  lone.write(1, 0);
  int sent = 0;
  do {
    while (lone.near.data()) ++sent;  // and lost
  } while (lone.scheduler.run_one(60 * kSecond));
  CHECK(sent == 1 + 7);  // QpAttributes::retry_count
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kRetryExceeded});
  CHECK(lone.near.qp.state() == QpState::kError);
  CHECK(lone.near.host.port.counters().local_ack_timeout_err.get() == 8);
}

TEST_CASE("lone pair: requester and responder follow their state diagrams") {
  Lone lone;
  auto states = [&] {
    return std::string(name(lone.near.qp.requester().state())) + " " +
           std::string(name(lone.far.qp.responder().state()));
  };
  CHECK(states() == "SENDING IN_ORDER");
  // A gap: a sequence NAK, until the missing packet comes.
  lone.write(1, 0);
  lone.write(2, 1);
  REQUIRE(lone.near.data());  // and lost
  lone.request(lone.near.data());
  CHECK(states() == "SENDING GAP");
  CHECK(lone.answer().syndrome == aeth::kNakSequence);
  for (int i = 0; i < 2; ++i) lone.request(lone.near.data());
  CHECK(states() == "SENDING IN_ORDER");
  lone.answer();
  // A SEND without a receive request: an RNR NAK, and the requester waits.
  SendRequest send;
  send.sges = Sge{0, 1, lone.near.key};
  REQUIRE(lone.near.qp.post(send));
  lone.request(lone.near.data());
  CHECK(states() == "SENDING REFUSED");
  lone.answer();
  CHECK(states() == "RNR_WAIT REFUSED");
  CHECK_FALSE(lone.near.data());
  ReceiveRequest receive;
  receive.sges = Sge{8, 1, lone.far.key};
  REQUIRE(lone.far.qp.post(receive));
  REQUIRE(lone.scheduler.run_one(kSecond));
  CHECK(states() == "SENDING REFUSED");
  lone.request(lone.near.data());
  CHECK(states() == "SENDING IN_ORDER");
  lone.answer();
  CHECK(lone.near.completions() == std::vector<WcStatus>(3, WcStatus::kSuccess));
  // A request that cannot be sent, behind one that is not acknowledged.
  lone.write(3, 2);
  lone.request(lone.near.data());
  send.sges = Sge{0, 1, 0};
  REQUIRE(lone.near.qp.post(send));
  CHECK_FALSE(lone.near.data());
  CHECK(states() == "BLOCKED IN_ORDER");
  lone.answer();
  CHECK(lone.near.completions() ==
        std::vector<WcStatus>{WcStatus::kSuccess, WcStatus::kLocalProtectionError});
  CHECK(lone.near.qp.state() == QpState::kError);
}

TEST_CASE("lone: a retry is a packet sent again: while none can leave, no time-out counts") {
  for (bool selective : {false, true}) {
    INFO((selective ? "selective retransmission" : "go-back-N"));
    Lone lone;
    for (LoneEnd* end : {&lone.near, &lone.far})
      end->host.selective().apply(std::vector<KnobValue>{uint64_t{selective}, uint64_t{64}});
    lone.write(1, 0);
    lone.request(lone.near.data());
    lone.answer();  // the ends agree
    PortCounters& counters = lone.near.host.port.counters();
    for (uint8_t i = 0; i < 3; ++i) lone.write(i, i);
    while (lone.near.data()) continue;  // all are lost
    for (uint64_t retry = 1; retry <= 7; ++retry) {
      while (lone.scheduler.run_one(lone.scheduler.now() + 100 * kSecond)) continue;
      CHECK(counters.local_ack_timeout_err.get() == retry);
      CHECK(lone.near.data());
      while (lone.near.data()) continue;
    }
    CHECK(lone.near.completions().size() == 1);
    while (lone.scheduler.run_one(lone.scheduler.now() + 100 * kSecond)) continue;
    CHECK(lone.near.completions().at(0) == WcStatus::kRetryExceeded);
  }
}

TEST_CASE("lone: after going back the deadline is that of packets which have been sent again") {
  Lone lone;
  PortCounters& counters = lone.near.host.port.counters();
  for (uint8_t i = 0; i < 3; ++i) lone.write(i, i);
  while (lone.near.data()) continue;  // all are lost
  while (counters.local_ack_timeout_err.get() == 0) REQUIRE(lone.scheduler.run_one(kSecond));
  wire::Headers headers;
  PacketPtr again = lone.near.data();
  headers = Lone::headers_of(*again);
  headers.bth.ack_req = true;
  Lone::rewrite(*again, headers);
  lone.request(std::move(again));
  lone.answer();
  while (lone.scheduler.run_one(lone.scheduler.now() + 100 * kSecond)) continue;
  CHECK(counters.local_ack_timeout_err.get() == 1);
}

TEST_CASE(
    "lone requester: a duplicate of an RNR NAK uses no retry until the request is sent again") {
  QpAttributes attributes;
  attributes.path_mtu = 256;
  attributes.rnr_retry = 1;
  Lone lone(attributes);
  REQUIRE(lone.near.qp.post(lone.eight(SendOp::kSend, 0)));
  lone.request(lone.near.data());
  PacketPtr nak = lone.far.qp.responder().emit_acknowledge();
  REQUIRE(nak);
  PacketPtr during = copy_of(*nak), after = copy_of(*nak), again = copy_of(*nak);
  lone.take(std::move(nak));
  lone.take(std::move(during));
  CHECK(lone.near.qp.requester().state() == RequesterState::kRnrWait);
  REQUIRE(lone.scheduler.run_one(kSecond));
  lone.take(std::move(after));
  CHECK(lone.near.qp.requester().state() == RequesterState::kSending);
  CHECK(lone.near.host.port.counters().rnr_nak_retry_err.get() == 3);
  REQUIRE(lone.near.data());
  lone.take(std::move(again));
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kRnrRetryExceeded});
}
