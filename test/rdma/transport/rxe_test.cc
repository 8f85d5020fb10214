// Requesters against a far end that answers as Linux Soft-RoCE (rxe) does: a sequence NAK for what
// follows an RNR NAK, READs answered from slow memory, each duplicate request served again, and
// packets that overtake each other. Chance comes from seeds, time from the test.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/rng.h"
#include "test/rdma/transport/lone.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// The far end of a pair, and the way back from it.
class Rxe {
 public:
  explicit Rxe(Lone& pair) : lone_(pair) {}

  uint64_t requests = 0;

  // Takes all requests that the near end may send now.
  void take_requests() {
    while (PacketPtr request = lone_.near.data()) {
      ++requests;
      if (request->transport().opcode() != wire::Opcode::kRcReadRequest) {
        lone_.request(std::move(request));
        continue;
      }
      wire::Headers headers = Lone::headers_of(*request);
      if (!sample_) {
        lone_.request(std::move(request));
        sample_ = lone_.far.data();
        REQUIRE(sample_);
      }
      answers_.push_back({headers.bth.psn, headers.reth.dma_len / mtu_, headers.reth.va, true});
    }
  }
  // Answers what follows a packet that rxe had no receive request for: a sequence NAK.
  void refuse() {
    REQUIRE(lone_.far.host.port.acknowledge);
    PacketPtr rnr = lone_.far.qp.responder().emit_acknowledge();
    REQUIRE(aeth::kind_of(rnr->transport().aeth().syndrome) == aeth::Kind::kRnr);
    PacketPtr sequence = copy_of(*rnr);
    wire::Headers headers = Lone::headers_of(*sequence);
    headers.aeth.syndrome = aeth::kNakSequence;
    Lone::rewrite(*sequence, headers);
    lone_.take(std::move(rnr));
    lone_.take(std::move(sequence));
  }
  // The next response to a READ on its way; one in `in` is overtaken by the one behind it.
  PacketPtr next_response(Rng& rng, uint32_t in) {
    if (!overtaken_) {
      PacketPtr first = make_response();
      if (!first || rng.below(in) != 0) return first;
      overtaken_ = std::move(first);
      if (PacketPtr second = make_response()) return second;
    }
    return std::exchange(overtaken_, PacketPtr());
  }

 private:
  // The rest of an answer to a READ. rxe answers each request to its end, one after the other.
  struct Answer {
    uint32_t psn, packets;
    uint64_t offset;
    bool first;
  };

  PacketPtr make_response() {
    if (answers_.empty()) return {};
    Answer& now = answers_.front();
    PacketPtr packet = lone_.pool.acquire();
    packet->payload = sample_->payload;
    packet->payload.offset = now.offset;
    wire::Headers headers = Lone::headers_of(*sample_);
    bool last = now.packets == 1;
    headers.bth.opcode =
        now.first ? last ? wire::Opcode::kRcReadResponseOnly : wire::Opcode::kRcReadResponseFirst
        : last    ? wire::Opcode::kRcReadResponseLast
                  : wire::Opcode::kRcReadResponseMiddle;
    headers.bth.psn = now.psn;
    headers.aeth.syndrome = aeth::kAckUnlimited;
    Lone::rewrite(*packet, headers);
    now = {now.psn + 1, now.packets - 1, now.offset + mtu_, false};
    if (last) answers_.pop_front();
    return packet;
  }

  Lone& lone_;
  const uint32_t mtu_ = lone_.near.qp.attributes().path_mtu;
  PacketPtr sample_;  // a response of ours, for the addresses
  std::deque<Answer> answers_;
  PacketPtr overtaken_;
};

}  // namespace

// IBTA 9.7.5.2.8: an RNR NAK costs no transport retry; and it shows that the far end lives.
TEST_CASE("rxe: sequence NAKs behind RNR NAKs use up no transport retries") {
  Lone lone;
  Rxe far(lone);
  constexpr int kSends = 4, kRounds = 20;  // transport retries: 7
  SendRequest send;
  send.sges = Sge{0, 1, lone.near.key};
  for (int i = 0; i < kSends; ++i) REQUIRE(lone.near.qp.post(send));
  for (int round = 0; round < kRounds; ++round) {
    far.take_requests();
    far.refuse();
    REQUIRE(lone.near.qp.state() == QpState::kRts);
    CHECK(lone.near.qp.requester().state() == RequesterState::kRnrWait);
    CHECK_FALSE(lone.near.data());
    REQUIRE(lone.scheduler.run_one(60 * kSecond));
  }
  ReceiveRequest receive;
  receive.sges = Sge{8, 1, lone.far.key};
  for (int i = 0; i < kSends; ++i) REQUIRE(lone.far.qp.post(receive));
  far.take_requests();
  lone.answer();
  CHECK(lone.near.completions() == std::vector<WcStatus>(kSends, WcStatus::kSuccess));
  CHECK(far.requests == kSends * (kRounds + 1));
  CHECK(lone.near.host.port.counters().rnr_nak_retry_err.get() == kRounds);
}

namespace {

// How a READ of all the far end's memory went.
struct ReadRun {
  std::vector<WcStatus> ended;
  bool same = false;
  double responses = 0;  // in units of the READ's packets
  uint64_t requests = 0;
};

// One response in kOvertakenIn is overtaken by the one behind it, none is lost. The far end answers
// a READ of `octets` in `time_outs` of the near end.
ReadRun read_overtaken(uint32_t mtu, size_t octets, double time_outs, uint64_t seed) {
  constexpr uint32_t kOvertakenIn = 50;
  Lone lone(mtu, octets);
  Rxe far(lone);
  Rng rng(seed, "overtaken");
  const uint64_t packets = octets / mtu;
  for (size_t i = 0; i < octets; ++i) lone.far.bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  SendRequest read;
  read.op = SendOp::kRead;
  read.rkey = lone.far.key;
  read.sges = Sge{0, static_cast<uint32_t>(octets), lone.near.key};
  REQUIRE(lone.near.qp.post(read));
  auto timeout = static_cast<double>(TimeNs{4096} << lone.near.qp.attributes().timeout);
  auto gap = static_cast<TimeNs>(time_outs * timeout / static_cast<double>(packets));
  ReadRun run;
  uint64_t responses = 0;
  while (run.ended.empty() && responses < 200 * packets) {
    far.take_requests();
    if (PacketPtr response = far.next_response(rng, kOvertakenIn)) {
      ++responses;
      lone.take(std::move(response));
    }
    lone.scheduler.run_until(lone.scheduler.now() + gap);
    run.ended = lone.near.completions();
  }
  run.same = lone.near.bytes == lone.far.bytes;
  run.responses = static_cast<double>(responses) / static_cast<double>(packets);
  run.requests = far.requests;
  return run;
}

}  // namespace

// A READ whose answer takes six time-outs.
TEST_CASE("rxe: a READ from slow memory ends although its responses overtake each other") {
  ReadRun run = read_overtaken(256, 1 << 16, 6, 25);
  INFO(run.responses << " times its responses, " << run.requests << " requests");
  CHECK(run.ended == std::vector<WcStatus>{WcStatus::kSuccess});
  CHECK(run.same);
  // 256 packets meet 5 overtakings. Each has the rest sent again: half of the READ, on average.
  CHECK(run.responses < 6);
  CHECK(run.requests < 40);  // five overtakings, and each answer outlasts six time-outs
}

TEST_CASE("rxe: a READ of 4 MiB ends although 2 % of its responses are overtaken") {
  for (uint64_t seed : {1, 2}) {
    ReadRun run = read_overtaken(1024, 4 << 20, 0.5, seed);
    INFO(run.responses << " times its responses, " << run.requests << " requests");
    CHECK(run.ended == std::vector<WcStatus>{WcStatus::kSuccess});
    CHECK(run.same);
    // 4,096 packets meet 82 overtakings, 9 of them a standard deviation. Each has the rest sent
    // again, half of the READ on average: 41 times the READ, and 3 deviations to either side. Some
    // of the rest is on its way twice: up to two requests for each overtaking.
    CHECK(run.responses > 27);
    CHECK(run.responses < 2 * 55);
    CHECK(run.requests > 55);
    CHECK(run.requests < 2 * 109);
  }
}

// Duplicate requests are each answered by a duplicate ACK: what is in flight shrinks.
TEST_CASE("rxe: a far end that does not answer is asked with fewer packets each time") {
  Lone lone;
  constexpr int kWrites = 60;
  for (int i = 0; i < kWrites; ++i) lone.write(static_cast<uint8_t>(i), static_cast<uint64_t>(i));
  std::vector<int> sent;
  do {
    int round = 0;
    while (lone.near.data()) ++round;
    if (round > 0) sent.push_back(round);
  } while (sent.size() < 5 && lone.scheduler.run_one(60 * kSecond));
  // The window is 128 packets: a quarter of it at each time-out behind the first.
  CHECK(sent == std::vector<int>{60, 60, 32, 8, 2});
  // An answer opens the window again, twice as far each time.
  while (sent.size() < 8) {
    int round = 0;
    while (PacketPtr packet = lone.near.data()) {
      lone.request(std::move(packet));
      ++round;
    }
    if (round > 0) {
      sent.push_back(round);
      lone.answer();
    } else {
      REQUIRE(lone.scheduler.run_one(60 * kSecond));
    }
  }
  CHECK(std::vector<int>(sent.begin() + 5, sent.end()) == std::vector<int>{1, 2, 4});
}

// A receiver whose memory is slow: meanwhile it answers each duplicate with an ACK, or with some,
// of what it had before. They tell nothing new (IBTA 9.7.5.1.4).
TEST_CASE("rxe: ACKs of duplicates are no progress, and in flight shrinks as without them") {
  Lone lone;
  Rng rng(7, "slow receiver");
  lone.write(1, 0);
  lone.request(lone.near.data());
  PacketPtr ack = lone.far.qp.responder().emit_acknowledge();
  REQUIRE(ack);
  lone.take(copy_of(*ack));
  REQUIRE(lone.near.completions().size() == 1);
  constexpr size_t kWrites = 60;
  for (size_t i = 0; i < kWrites; ++i) lone.write(static_cast<uint8_t>(i), i);
  std::vector<PacketPtr> slow;
  std::vector<int> sent;
  while (sent.size() < 5) {
    int round = 0;
    for (; PacketPtr packet = lone.near.data(); ++round) {
      if (slow.size() < kWrites) {
        slow.push_back(std::move(packet));
        continue;
      }
      for (uint64_t i = rng.below(3) + 1; i > 0; --i) lone.take(copy_of(*ack));
    }
    if (round > 0) sent.push_back(round);
    REQUIRE(lone.scheduler.run_one(60 * kSecond));
  }
  // The window is 128 packets: a quarter of it at each time-out behind the first.
  CHECK(sent == std::vector<int>{60, 60, 32, 8, 2});
  CHECK(lone.near.qp.state() == QpState::kRts);
  for (PacketPtr& packet : slow) lone.request(std::move(packet));
  lone.answer();
  CHECK(lone.near.completions() == std::vector<WcStatus>(kWrites, WcStatus::kSuccess));
}
