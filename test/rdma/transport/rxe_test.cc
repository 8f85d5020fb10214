// Requesters against a far end that answers as Linux Soft-RoCE (rxe) does: a sequence NAK for what
// follows an RNR NAK, READs answered from slow memory, each duplicate request served again, and
// packets that overtake each other.
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
      answers_.push_back({headers.bth.psn, headers.reth.dma_len / kMtu, headers.reth.va, true});
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

  static constexpr uint32_t kMtu = 256;

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
    now = {now.psn + 1, now.packets - 1, now.offset + kMtu, false};
    if (last) answers_.pop_front();
    return packet;
  }

  Lone& lone_;
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

// A READ whose answer takes six time-outs, with responses that overtake each other and none lost.
TEST_CASE("rxe: a READ from slow memory ends although its responses overtake each other") {
  constexpr uint32_t kOvertakenIn = 50;
  Lone lone(Rxe::kMtu);
  Rxe far(lone);
  Rng rng(25, "overtaken");
  const uint64_t size = lone.far.bytes.size(), packets = size / Rxe::kMtu;
  for (size_t i = 0; i < size; ++i) lone.far.bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
  SendRequest read;
  read.op = SendOp::kRead;
  read.rkey = lone.far.key;
  read.remote_address = 0;
  read.sges = Sge{0, static_cast<uint32_t>(size), lone.near.key};
  REQUIRE(lone.near.qp.post(read));
  // The first answer alone takes six time-outs.
  const TimeNs timeout = TimeNs{4096} << lone.near.qp.attributes().timeout;
  const TimeNs gap = 6 * timeout / static_cast<TimeNs>(packets);
  std::vector<WcStatus> ended;
  uint64_t responses = 0;
  while (ended.empty() && responses < 100 * packets) {
    far.take_requests();
    if (PacketPtr response = far.next_response(rng, kOvertakenIn)) {
      ++responses;
      lone.take(std::move(response));
    }
    lone.scheduler.run_until(lone.scheduler.now() + gap);
    ended = lone.near.completions();
  }
  INFO(responses << " responses for " << packets << ", " << far.requests << " requests");
  CHECK(ended == std::vector<WcStatus>{WcStatus::kSuccess});
  CHECK(lone.near.bytes == lone.far.bytes);
  // 256 packets meet 5 overtakings. Each has the rest sent again: half of the READ, on average.
  CHECK(responses < 6 * packets);
  CHECK(far.requests < 40);  // five overtakings, and each answer outlasts six time-outs
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
