// RMPP as seen by the agents of ports.
#include <catch2/catch.hpp>

#include <deque>

#include "core/base/rng.h"
#include "mad_cc/mad/rmpp_sender.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/port/reassembly.h"
#include "test/mad_cc/port/mad_rig.h"

using namespace rocefs;
using namespace rocefs::mad;

namespace {

Message in_segments(uint8_t method, size_t octets, uint64_t tid = 0) {
  Mad mad = a_mad(kSubnAdm, method, tid);
  mad.set_rmpp(kRmppData, kRmppActive, 0, 0, 0);
  Message message(mad.bytes.begin(), mad.bytes.begin() + 56);
  for (size_t i = 0; i < octets; ++i) message.push_back(static_cast<uint8_t>(i * 7 + (i >> 8)));
  return message;
}
// Builds the answer to `request` in segments, as of a sender with an endless window.
std::vector<Mad> segments_of(const Mad& request, size_t octets) {
  Message message = in_segments(request.method() | kResponseBit, octets, request.tid());
  RmppSender sender(message);
  std::vector<Mad> segments;
  for (;;) {
    while (std::optional<Mad> mad = sender.next(0)) segments.push_back(*mad);
    if (segments.size() == sender.segments()) return segments;
    Mad ack = rmpp_end(segments[0], kRmppAck, 0);
    ack.set_rmpp(kRmppAck, kRmppActive, 0, static_cast<uint32_t>(segments.size()), 100000);
    sender.receive(ack);
  }
}

// Two ports and a wire of 1 us between them that loses what it is told to. `far` answers each
// GetTable with a table, and each GetMulti.
struct Wire : MadCarrier, MadUser {
  Scheduler scheduler;
  MadRig near;  // its port is not used, what it hears is
  MadPort a{*this, scheduler}, b{*this, scheduler};
  std::function<bool()> loses = [] { return false; };
  struct Flight {
    MadPort* to;
    Address from;
    Mad mad;
    TimeNs at;
  };
  std::deque<Flight> flights;
  Event arrival = event_of<&Wire::arrive>(this);
  size_t table = 1000;
  uint32_t far_agent = 0, near_agent = 0;
  std::vector<std::string> heard;
  std::vector<Message> requests;
  Message answer;

  Wire() {
    far_agent = *b.add_agent(MadRig::registration(kSubnAdm, 1, {kGetTable, kGetMulti}), *this);
    near_agent = *a.add_agent(MadRig::registration(kSubnAdm, 1), *this);
    // Different ids at the two ends, to tell them apart in the log.
    a.remove_agent(near_agent);
    near_agent = *a.add_agent(MadRig::registration(kSubnAdm, 1), *this);
  }
  void transmit(MadReceiver& from, const Address&, const Mad& mad) override {
    if (loses()) return;
    bool from_a = &from == &a;
    flights.push_back({from_a ? &b : &a,
                       {.lid = static_cast<uint16_t>(from_a ? 1 : 2), .qpn = 1},
                       mad,
                       scheduler.now() + kMicrosecond});
    if (!arrival.scheduled()) scheduler.at(arrival, flights.front().at);
  }
  void arrive(TimeNs now) {
    while (!flights.empty() && flights.front().at <= now) {
      Flight flight = flights.front();
      flights.pop_front();
      flight.to->receive(flight.from, flight.mad);
    }
    if (!flights.empty()) scheduler.at(arrival, flights.front().at);
  }
  void received(uint32_t agent, std::optional<uint64_t> request, const Address& from,
                Message message) override {
    Mad mad = first_mad(message);
    if (agent == near_agent && request) {
      answer = std::move(message);
      heard.push_back(fmt::format("answer {}", *request));
      return;
    }
    requests.push_back(std::move(message));
    Message reply = in_segments(mad.method() | kResponseBit, table, mad.tid());
    CHECK(b.send(far_agent, MadSend{requests.size(), from, 0, 3, reply}));
  }
  void ended(uint32_t agent, uint64_t request, End end) override {
    heard.push_back(fmt::format("{} {} ended {}", agent == near_agent ? "near" : "far", request,
                                static_cast<int>(end)));
  }
  void ask(uint64_t request, Message message, uint32_t timeout_ms = 10000) {
    Address to{.lid = 2, .qpn = 1};
    REQUIRE(a.send(near_agent, MadSend{request, to, timeout_ms, 0, std::move(message)}));
  }
};

}  // namespace

TEST_CASE("port: a table arrives in segments and is one answer") {
  Wire wire;
  for (size_t octets : {size_t{0}, size_t{64}, size_t{200}, size_t{201}, size_t{100000}}) {
    wire.table = octets;
    wire.heard.clear();
    wire.ask(octets, message_of(a_mad(kSubnAdm, kGetTable, octets)));
    wire.scheduler.run_until(wire.scheduler.now() + kSecond);
    CHECK(wire.heard.size() == 2);
    CHECK(wire.heard.at(0) == fmt::format("answer {}", octets));
    CHECK(wire.heard.at(1).starts_with("far"));
    CHECK(wire.heard.at(1).ends_with("ended 0"));
    Message whole = in_segments(kGetTableResp, octets, first_mad(wire.requests.back()).tid());
    REQUIRE(wire.answer.size() == whole.size());
    CHECK(std::equal(wire.answer.begin() + 36, wire.answer.end(), whole.begin() + 36));
    CHECK(wire.a.sends_under_way() == 0);
    CHECK(wire.b.sends_under_way() == 0);
  }
  CHECK(wire.a.reassemblies() == 5);  // remembered for ACKs that were lost
  wire.scheduler.run_until(wire.scheduler.now() + 10 * kSecond);
  CHECK(wire.a.reassemblies() == 0);
}

TEST_CASE("port: a table survives the loss of any MAD except its request") {
  size_t all = 0;
  Wire whole;
  whole.table = 200 * 70;
  whole.loses = [&] { return ++all == 0; };
  whole.ask(1, message_of(a_mad(kSubnAdm, kGetTable, 1)));
  whole.scheduler.run_until(kSecond);
  REQUIRE(all == 1 + 70 + 3);
  for (size_t lost = 2; lost <= all; ++lost) {
    Wire wire;
    size_t count = 0;
    wire.table = 200 * 70;
    wire.loses = [&] { return ++count == lost; };
    wire.ask(1, message_of(a_mad(kSubnAdm, kGetTable, 1)));
    wire.scheduler.run_until(5 * kSecond);
    CAPTURE(lost);
    REQUIRE(wire.heard.size() == 2);
    CHECK(wire.answer.size() == 56 + 200 * 70);
    CHECK(wire.b.sends_under_way() == 0);
  }
}

TEST_CASE("port: a long request is sent in segments and received as one message") {
  Wire wire;
  wire.ask(1, in_segments(kGetMulti, 5000, 3));
  wire.scheduler.run_until(kSecond);
  CHECK(wire.heard == std::vector<std::string>{"answer 1", "far 1 ended 0"});
  REQUIRE(wire.requests.size() == 1);
  CHECK(wire.requests[0].size() == 5056);
  CHECK(wire.answer.size() == 1056);
  // Retries of the sender are those of the request if nothing arrives.
  wire.loses = [] { return true; };
  wire.ask(2, in_segments(kGetMulti, 5000, 4), 100);
  wire.heard.clear();
  wire.scheduler.run_until(2 * kSecond);
  CHECK(wire.heard == std::vector<std::string>{"near 2 ended 1"});
}

TEST_CASE("port: an acknowledged long request waits for its answer and is not resent") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  REQUIRE(rig.send(agent, 1, in_segments(kGetMulti, 300, 5), 100, 7) == 0);
  REQUIRE(rig.transmitted.size() == 1);
  Mad ack = rmpp_end(rig.last(), kRmppAck, 0);
  ack.set_rmpp(kRmppAck, kRmppActive, 0, 1, 5);
  rig.receive(ack);
  REQUIRE(rig.transmitted.size() == 2);
  ack.set_rmpp(kRmppAck, kRmppActive, 0, 2, 5);
  for (int times = 0; times < 2; ++times) {
    rig.pass(10 * kMillisecond);
    rig.receive(ack);  // the second one asks for the turn again
  }
  REQUIRE(rig.transmitted.size() == 4);
  CHECK(rig.last().rmpp_type() == kRmppAck);
  CHECK(rig.last().rmpp_segment() == 0);
  CHECK(rig.last().rmpp_length() == 1);
  CHECK(rig.last().method() == kGetMulti);
  rig.pass(kSecond);
  CHECK(rig.transmitted.size() == 4);
  CHECK(rig.news() == fmt::format("110: {} 1 timed out; ", agent));
}

TEST_CASE("port: STOP or ABORT ends a segmented request; a plain request times out") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  uint8_t type = GENERATE(uint8_t{kRmppStop}, uint8_t{kRmppAbort});
  REQUIRE(rig.send(agent, 1, in_segments(kGetMulti, 300, 5)) == 0);
  REQUIRE(rig.send(agent, 2, a_mad(kSubnAdm, kGetTable, 6)) == 0);
  uint8_t status = type == kRmppStop ? 1 : 120;
  rig.receive(rmpp_end(rig.transmitted[0].mad, type, status));
  rig.receive(rmpp_end(rig.transmitted[1].mad, type, status));
  rig.pass(kSecond);
  CHECK(rig.news() == "0: 1 1 failed; 100: 1 2 timed out; ");
  CHECK(rig.transmitted.size() == 2);
}

TEST_CASE("port: with user RMPP each segment is passed on unchanged") {
  MadRig rig;
  MadRegistration registration = MadRig::registration(kSubnAdm, 1, {kGetTable});
  registration.user_rmpp = true;
  uint32_t version = GENERATE(0, 1);
  registration.rmpp_version = static_cast<uint8_t>(version);
  uint32_t agent = *rig.port.add_agent(registration, rig);
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGetTable, 6)) == 0);
  std::vector<Mad> segments = segments_of(rig.last(), 450);
  REQUIRE(segments.size() == 3);
  for (const Mad& segment : segments) rig.receive(segment);
  CHECK(rig.news() ==
        "0: 1 1 256 octets from 7; 0: 1 - 256 octets from 7; 0: 1 - 256 octets from 7; ");
  for (size_t i = 0; i < 3; ++i) CHECK(first_mad(rig.messages[i]) == segments[i]);
  // Dropped: neither a segment nor an answer.
  Mad plain = answer_to(rig.last());
  rig.receive(plain);
  CHECK(rig.news() == "");
  // ACKs belong to the user as well, to send and to receive.
  Mad ack = rmpp_end(segments[0], kRmppAck, 0);
  REQUIRE(rig.send(agent, 2, ack, 0) == 0);
  CHECK(rig.last() == [&] {
    Mad sent = ack;
    sent.set_tid(uint64_t{agent} << 32 | 6);
    return sent;
  }());
  rig.pass(0);
  rig.receive(ack);
  CHECK(rig.news() == "0: 1 2 sent; 0: 1 - 256 octets from 7; ");
  CHECK(rig.send(agent, 3, in_segments(kGetMulti, 300, 5)) == EINVAL);
  CHECK(rig.port.reassemblies() == 0);
}

TEST_CASE("port: a late answer in segments is acknowledged and discarded") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGetTable, 6), 10) == 0);
  std::vector<Mad> segments = segments_of(rig.last(), 450);
  rig.receive(segments[0]);
  rig.pass(20 * kMillisecond);
  rig.receive(segments[1]);
  rig.receive(segments[2]);
  CHECK(rig.news() == "10: 1 1 timed out; ");
  CHECK(rig.last().rmpp_type() == kRmppAck);
  CHECK(rig.last().rmpp_segment() == 3);
}

TEST_CASE("port: a reused TID gets its answer in segments again") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  for (uint64_t request = 1; request <= 3; ++request) {
    REQUIRE(rig.send(agent, request, a_mad(kSubnAdm, kGetTable, 6)) == 0);
    std::vector<Mad> segments = segments_of(rig.last(), 450);
    for (const Mad& segment : segments) rig.receive(segment);
    for (const Mad& segment : segments) rig.receive(segment);  // duplicates
    CHECK(rig.news() == fmt::format("0: 1 {} 506 octets from 7; ", request));
  }
  CHECK(rig.port.reassemblies() == 1);
}

TEST_CASE("port: an incomplete answer is aborted after 40 s, or dropped with its agent") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGetTable, 6), 10) == 0);
  std::vector<Mad> segments = segments_of(rig.last(), 450);
  rig.receive(segments[0]);
  CHECK(rig.port.reassemblies() == 1);
  size_t before = rig.transmitted.size();
  SECTION("after 40 s") {
    rig.pass(40 * kSecond);
    REQUIRE(rig.transmitted.size() == before + 1);
    CHECK(rig.last().rmpp_type() == kRmppAbort);
    CHECK(rig.last().rmpp_status() == kRmppTotalTimeTooLong);
    CHECK(rig.transmitted.back().to == rig.peer);
  }
  SECTION("its agent is removed") {
    rig.port.remove_agent(agent);
  }
  SECTION("its sender's ABORT") {
    rig.receive(rmpp_end(segments[0], kRmppAbort, kRmppTooManyRetries, true));
  }
  SECTION("the port leaves") {
    rig.port.leave();
  }
  CHECK(rig.port.reassemblies() == 0);
  rig.pass(100 * kSecond);
  CHECK(rig.transmitted.size() <= before + 1);
}

TEST_CASE("port: a wrong RMPP version or type is answered by ABORT") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGetTable, 6)) == 0);
  Mad wrong = segments_of(rig.last(), 450)[0];
  SECTION("version") {
    wrong.bytes[24] = 2;
    rig.receive(wrong);
    CHECK(rig.last().rmpp_status() == kRmppUnsupportedVersion);
  }
  SECTION("type") {
    wrong.bytes[25] = 9;
    rig.receive(wrong);
    CHECK(rig.last().rmpp_status() == kRmppBadType);
  }
  CHECK(rig.last().rmpp_type() == kRmppAbort);
  CHECK(rig.transmitted.size() == 2);
  CHECK(rig.port.reassemblies() == 0);
}

TEST_CASE(
    "port: messages in reassembly beyond half of the places are stopped, the others complete") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1);
  std::vector<Mad> kept;
  constexpr uint64_t kShare = Reassembly::kMaxUnderWay / 2;
  for (uint64_t i = 0; i <= kShare; ++i) {
    REQUIRE(rig.send(agent, i, a_mad(kSubnAdm, kGetTable, i)) == 0);
    std::vector<Mad> segments = segments_of(rig.last(), 450);
    if (i == 0) kept = segments;
    rig.receive(segments[0]);
    CHECK(rig.last().rmpp_type() == (i < kShare ? kRmppAck : kRmppStop));
  }
  CHECK(rig.last().rmpp_status() == kRmppResourcesExhausted);
  rig.receive(kept[1]);
  rig.receive(kept[2]);
  CHECK(rig.last().rmpp_type() == kRmppAck);
  CHECK(rig.last().rmpp_segment() == 3);
  CHECK(rig.port.reassemblies() == kShare);
  rig.pass(100 * kSecond);
  CHECK(rig.port.reassemblies() == 0);
}

TEST_CASE("port: unexpected partial answers take no place in reassembly") {
  MadRig rig;
  uint32_t agent = rig.agent(kSubnAdm, 1), other = rig.agent(kSubnAdm, 1);
  Mad request = a_mad(kSubnAdm, kGetTable);
  for (uint64_t i = 0; i < 2 * Reassembly::kMaxUnderWay; ++i) {
    request.set_tid(uint64_t{i % 2 == 0 ? agent : other} << 32 | i);
    rig.peer.lid = static_cast<uint16_t>(8 + i);
    rig.receive(segments_of(request, 450)[0]);
  }
  CHECK(rig.port.reassemblies() == 0);
  CHECK(rig.transmitted.empty());
  rig.peer.lid = 7;
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGetTable, 6)) == 0);
  for (const Mad& segment : segments_of(rig.last(), 450)) rig.receive(segment);
  CHECK(rig.news() == "0: 1 1 506 octets from 7; ");
}

TEST_CASE("port: neither a source nor an agent takes all places in reassembly") {
  MadRig rig;
  // Unsolicited requests: accepted from everybody.
  uint32_t open = rig.agent(kSubnAdm, 1, {kGetMulti}), agent = rig.agent(kSubnAdm, 1);
  bool one_source = GENERATE(true, false);
  for (uint64_t i = 0; i < Reassembly::kMaxUnderWay; ++i) {
    Mad segment = segments_of(a_mad(kSubnAdm, kGetMulti, i), 450)[0];
    segment.set_method(kGetMulti);
    rig.peer.lid = static_cast<uint16_t>(one_source ? 8 : 8 + i);
    rig.receive(segment);
  }
  size_t taken = rig.port.reassemblies();
  CHECK(taken == Reassembly::kMaxUnderWay / 2);
  rig.peer.lid = 7;
  REQUIRE(rig.send(agent, 1, a_mad(kSubnAdm, kGetTable, 6)) == 0);
  for (const Mad& segment : segments_of(rig.last(), 450)) rig.receive(segment);
  CHECK(rig.news() == fmt::format("0: {} 1 506 octets from 7; ", agent));
  rig.port.remove_agent(open);
  CHECK(rig.port.reassemblies() == 1);
}

TEST_CASE("port: the number of remembered messages and of stored octets is limited") {
  Reassembly reassembly;
  Mad data = a_mad(kSubnAdm, kGetTableResp);
  for (uint64_t i = 0; i < Reassembly::kMaxComplete + 10; ++i) {
    data.set_tid(i);
    data.set_rmpp(kRmppData, kRmppActive | kRmppFirst | kRmppLast, 0, 1, 100);
    REQUIRE(reassembly.receive(1, {}, data, false, static_cast<TimeNs>(i)).message);
  }
  CHECK(reassembly.size() == Reassembly::kMaxComplete);
  CHECK(reassembly.next_deadline() == 10 + RmppReceiver::kCompleteTimeNs);
  reassembly.clear();

  size_t stopped = 0;
  for (uint64_t transaction = 0; transaction < 8 && stopped == 0; ++transaction) {
    data.set_tid(transaction);
    for (uint32_t number = 1; number <= 80000; ++number) {
      data.set_rmpp(kRmppData, number == 1 ? kRmppActive | kRmppFirst : kRmppActive, 0, number, 0);
      std::optional<Mad> reply = reassembly.receive(1, {}, data, false, 0).reply;
      if (!reply || reply->rmpp_type() == kRmppAck) continue;
      CHECK(reply->rmpp_type() == kRmppStop);
      ++stopped;
      break;
    }
  }
  CHECK(stopped == 1);
  CHECK(reassembly.size() < 7);
  CHECK(reassembly.octets() <= Reassembly::kMaxOctets);
  CHECK(reassembly.octets() > Reassembly::kMaxOctets / 8);
  SECTION("expired") {
    reassembly.expire(RmppReceiver::kTotalTimeNs);
  }
  SECTION("with their agent") {
    reassembly.remove_agent(1);
  }
  CHECK(reassembly.octets() == 0);
  CHECK(reassembly.size() == 0);
  CHECK(reassembly.next_deadline() == kNever);
}

TEST_CASE("port: with loss each request ends once, and nothing is left") {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Wire wire;
    Rng rng(seed, "wire");
    wire.loses = [&] { return rng.chance(0.05); };
    size_t answers = 0;
    for (uint64_t i = 0; i < 50; ++i) {
      bool is_long = rng.chance(0.3);
      Message message = is_long ? in_segments(kGetMulti, rng.below(3000), i)
                                : message_of(a_mad(kSubnAdm, kGetTable, i));
      wire.ask(i, message);
    }
    wire.table = rng.below(20000);
    wire.scheduler.run_until(200 * kSecond);
    std::vector<int> ends(50);
    for (const std::string& line : wire.heard) {
      if (line.starts_with("answer")) ++answers, ++ends[std::stoul(line.substr(7))];
      if (line.starts_with("near")) ++ends[std::stoul(line.substr(5))];
    }
    CHECK(ends == std::vector<int>(50, 1));
    CHECK(answers > 30);
    for (MadPort* port : {&wire.a, &wire.b}) {
      CHECK(port->sends_under_way() == 0);
      CHECK(port->reassemblies() == 0);
    }
    CHECK(wire.scheduler.next() == kNever);
  }
}
