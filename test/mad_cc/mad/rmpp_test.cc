#include <catch2/catch.hpp>

#include "core/base/rng.h"
#include "mad_cc/mad/rmpp_receiver.h"
#include "mad_cc/mad/rmpp_sender.h"
#include "test/mad_cc/port/mad_rig.h"

using namespace rocefs;
using namespace rocefs::mad;

namespace {

// Table of that many octets, each different from its neighbours.
Message table(size_t octets, uint8_t mgmt_class = kSubnAdm) {
  Mad mad = a_mad(mgmt_class, kGetTableResp, 0x1122334455667788);
  Message message(mad.bytes.begin(),
                  mad.bytes.begin() + static_cast<long>(data_offset(mgmt_class)));
  for (size_t i = 0; i < octets; ++i) message.push_back(static_cast<uint8_t>(i * 7 + (i >> 8)));
  return message;
}
Mad segment_of(uint32_t number, uint8_t flags, uint32_t length, uint8_t status = 0) {
  Mad mad = a_mad(kSubnAdm, kGetTableResp, 9);
  mad.set_rmpp(kRmppData, static_cast<uint8_t>(kRmppActive | flags), status, number, length);
  return mad;
}
Mad ack_of(const RmppSender& sender, uint32_t segment, uint32_t window_last) {
  Mad mad = rmpp_end(first_mad(sender.message()), kRmppAck, 0);
  mad.set_rmpp(kRmppAck, kRmppActive, 0, segment, window_last);
  return mad;
}
std::vector<uint32_t> drain(RmppSender& sender, TimeNs now) {
  std::vector<uint32_t> segments;
  while (std::optional<Mad> mad = sender.next(now)) segments.push_back(mad->rmpp_segment());
  return segments;
}
using Numbers = std::vector<uint32_t>;

// Both ends, with a wire that loses what `loses` selects. Returns false if they do not finish.
struct Pair {
  explicit Pair(Message message, RmppSender::Patience patience = {})
      : sender(std::move(message), patience) {}
  RmppSender sender;
  RmppReceiver receiver{0};
  TimeNs now = 0;
  size_t data = 0, replies = 0;

  bool run(const std::function<bool(const Mad&)>& loses) {
    for (int round = 0; round < 1000 && !sender.ended(); ++round) {
      while (std::optional<Mad> mad = sender.next(now)) {
        ++data;
        if (loses(*mad)) continue;
        std::optional<Mad> reply = receiver.receive(*mad, now);
        if (!reply) continue;
        ++replies;
        if (!loses(*reply)) sender.receive(*reply);
      }
      if (!sender.ended()) now = std::max(now, sender.deadline());
    }
    return sender.ended();
  }
};
bool nothing(const Mad&) {
  return false;
}

}  // namespace

TEST_CASE("RMPP: a message of any length arrives unchanged") {
  for (uint8_t mgmt_class : {uint8_t{kSubnAdm}, uint8_t{kDeviceMgt}, uint8_t{0x30}}) {
    size_t per_segment = kMadSize - data_offset(mgmt_class);
    for (size_t octets : {size_t{0}, size_t{1}, per_segment - 1, per_segment, per_segment + 1,
                          2 * per_segment, 65 * per_segment, 200 * per_segment + 1}) {
      Message message = table(octets, mgmt_class);
      Pair pair(message);
      REQUIRE(pair.run(nothing));
      REQUIRE(pair.sender.state() == RmppSender::State::kDone);
      REQUIRE(pair.receiver.state() == RmppReceiver::State::kComplete);
      Message taken = pair.receiver.take();
      REQUIRE(taken.size() == message.size());
      std::fill(taken.begin() + 24, taken.begin() + 36, uint8_t{0});  // the first one's RMPP header
      CHECK(taken == message);
      CHECK(pair.data == pair.sender.segments());
      CHECK(pair.now == 0);
    }
  }
}

TEST_CASE("RMPP: segments carry First, Last and the payload length of the standard") {
  RmppSender sender(table(450));
  REQUIRE(sender.segments() == 3);
  std::optional<Mad> first = sender.next(0);
  REQUIRE(first);
  CHECK(first->rmpp_flags() == (kRmppActive | kRmppFirst));
  CHECK(first->rmpp_length() == 450 + 3 * 20);  // each has 20 octets of the SA's header
  CHECK(!sender.next(0));                       // the first window is one segment
  sender.receive(ack_of(sender, 1, 3));
  CHECK(sender.next(0)->rmpp_flags() == kRmppActive);
  std::optional<Mad> last = sender.next(0);
  CHECK(last->rmpp_flags() == (kRmppActive | kRmppLast));
  CHECK(last->rmpp_length() == 50 + 20);
  CHECK(last->rmpp_segment() == 3);

  RmppSender one(table(120));
  first = one.next(0);
  CHECK(first->rmpp_flags() == (kRmppActive | kRmppFirst | kRmppLast));
  CHECK(first->rmpp_length() == 140);
  one.receive(ack_of(one, 1, 1));
  CHECK(one.state() == RmppSender::State::kDone);
}

TEST_CASE("RMPP: the loss of any segment or ACK is repaired") {
  Message message = table(200 * 140 + 3);
  Pair whole(message);
  REQUIRE(whole.run(nothing));
  size_t all = whole.data + whole.replies;
  REQUIRE(whole.data == 141);
  for (size_t lost = 0; lost < all; ++lost) {
    INFO("lost: " << lost);
    Pair pair(message);
    size_t count = 0;
    REQUIRE(pair.run([&](const Mad&) { return count++ == lost; }));
    REQUIRE(pair.sender.state() == RmppSender::State::kDone);
    REQUIRE(pair.receiver.take().size() == message.size());
    CHECK(pair.now <= 2 * kSecond);
  }
}

TEST_CASE("RMPP: under random loss everything arrives, or the sender times out") {
  size_t done = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, "rmpp");
    Message message = table(200 * (1 + rng.below(150)));
    Pair pair(message);
    REQUIRE(pair.run([&](const Mad&) { return rng.chance(0.1); }));
    if (pair.sender.state() != RmppSender::State::kDone) {
      CHECK(pair.sender.state() == RmppSender::State::kTimedOut);
      continue;
    }
    ++done;
    Message taken = pair.receiver.take();
    REQUIRE(std::equal(taken.begin() + 56, taken.end(), message.begin() + 56, message.end()));
  }
  CHECK(done > 150);
}

TEST_CASE("RMPP: a sender resends unacknowledged segments, then aborts with TooManyRetries") {
  RmppSender sender(table(2000), {100, 2});
  CHECK(drain(sender, 0) == Numbers{1});
  sender.receive(ack_of(sender, 1, 4));
  CHECK(drain(sender, 10) == Numbers{2, 3, 4});
  CHECK(sender.deadline() == 110);
  CHECK(drain(sender, 109).empty());
  sender.receive(ack_of(sender, 2, 4));
  CHECK(drain(sender, 110) == Numbers{3, 4});
  CHECK(drain(sender, 210) == Numbers{3, 4});
  sender.receive(ack_of(sender, 3, 4));  // progress: the tries begin anew
  CHECK(drain(sender, 310) == Numbers{4});
  CHECK(drain(sender, 410) == Numbers{4});
  std::optional<Mad> abort = sender.next(510);
  REQUIRE(abort);
  CHECK(abort->rmpp_type() == kRmppAbort);
  CHECK(abort->rmpp_status() == kRmppTooManyRetries);
  CHECK(abort->method() == kGetTableResp);
  CHECK(sender.state() == RmppSender::State::kTimedOut);
  CHECK(!sender.next(1000));
  CHECK(sender.deadline() == kNever);
}

TEST_CASE("RMPP: a sender whose window stays closed resends the last segment") {
  RmppSender sender(table(600), {100, 2});
  CHECK(drain(sender, 0) == Numbers{1});
  sender.receive(ack_of(sender, 1, 1));
  CHECK(drain(sender, 50).empty());
  CHECK(sender.deadline() == 100);
  CHECK(drain(sender, 100) == Numbers{1});
  sender.receive(ack_of(sender, 1, 9));
  CHECK(drain(sender, 150) == Numbers{2, 3});
}

TEST_CASE("RMPP: a sender ignores an outdated ACK") {
  RmppSender sender(table(2000));
  drain(sender, 0);
  sender.receive(ack_of(sender, 1, 5));
  drain(sender, 0);
  sender.receive(ack_of(sender, 4, 8));
  CHECK(drain(sender, 0) == Numbers{6, 7, 8});
  sender.receive(ack_of(sender, 2, 5));
  sender.receive(ack_of(sender, 5, 6));
  CHECK(drain(sender, 0).empty());
  CHECK(!sender.ended());
}

TEST_CASE("RMPP: each invalid answer ends a sender with the standard's status") {
  struct Row {
    uint8_t version, type, status;
    uint32_t segment, window;
    uint8_t ends_with;
    bool says_so;
  };
  Row row = GENERATE(Row{2, kRmppAck, 0, 1, 5, kRmppUnsupportedVersion, true},
                     Row{1, kRmppAck, 1, 1, 5, kRmppIllegalStatus, true},
                     Row{1, kRmppAck, 0, 1, 0, kRmppWindowTooSmall, true},
                     Row{1, kRmppAck, 0, 2, 5, kRmppSegmentTooBig, true},
                     Row{1, kRmppAck, 0, 99, 100, kRmppSegmentTooBig, true},
                     Row{1, 5, 0, 1, 5, kRmppBadType, true},
                     Row{1, kRmppNone, 0, 1, 5, kRmppBadType, true},
                     Row{1, kRmppStop, 1, 0, 0, kRmppResourcesExhausted, false},
                     Row{1, kRmppStop, 120, 0, 0, kRmppIllegalStatus, true},
                     Row{1, kRmppAbort, 118, 0, 0, kRmppTotalTimeTooLong, false},
                     Row{1, kRmppAbort, 127, 0, 0, kRmppUnspecified, false},
                     Row{1, kRmppAbort, 117, 0, 0, kRmppIllegalStatus, true},
                     Row{1, kRmppAbort, 128, 0, 0, kRmppIllegalStatus, true});
  RmppSender sender(table(600));
  drain(sender, 0);
  Mad answer = ack_of(sender, 0, 0);
  answer.set_rmpp(row.type, kRmppActive, row.status, row.segment, row.window);
  answer.bytes[24] = row.version;
  sender.receive(answer);
  CAPTURE(row.version, row.type, row.status, row.segment, row.window);
  CHECK(sender.state() == RmppSender::State::kStopped);
  CHECK(sender.status() == row.ends_with);
  std::optional<Mad> abort = sender.next(0);
  REQUIRE(abort.has_value() == row.says_so);
  if (abort) {
    CHECK(abort->rmpp_type() == kRmppAbort);
    CHECK(abort->rmpp_status() == row.ends_with);
    CHECK(abort->rmpp_version() == 1);
    CHECK(abort->method() == kGetTableResp);
    CHECK(!sender.next(0));
  }
}

TEST_CASE("RMPP: inconsistent segments end a receiver with the standard's status") {
  struct Row {
    std::vector<Mad> segments;
    uint8_t type, status;
  };
  constexpr uint8_t F = kRmppFirst, L = kRmppLast;
  Row row = GENERATE_COPY(
      Row{{segment_of(1, F, 660, 1)}, kRmppAbort, kRmppIllegalStatus},
      Row{{segment_of(0, 0, 0)}, kRmppAbort, kRmppBadSegment},
      Row{{segment_of(0, F, 0)}, kRmppAbort, kRmppBadSegment},
      Row{{segment_of(1, 0, 660)}, kRmppAbort, kRmppBadSegment},
      Row{{segment_of(2, F, 660)}, kRmppAbort, kRmppBadSegment},
      Row{{segment_of(1, F, 660), segment_of(2, F, 0)}, kRmppAbort, kRmppBadSegment},
      Row{{segment_of(1, F, 0), segment_of(3, L, 220), segment_of(4, 0, 0)},
          kRmppAbort,
          kRmppBadSegment},
      Row{{segment_of(1, F, 0), segment_of(3, L, 220), segment_of(3, 0, 0)},
          kRmppAbort,
          kRmppBadSegment},
      Row{{segment_of(1, F, 0), segment_of(5, 0, 0), segment_of(3, L, 220)},
          kRmppAbort,
          kRmppBadSegment},
      Row{{segment_of(1, F | L, 19)}, kRmppAbort, kRmppBadLength},
      Row{{segment_of(1, F | L, 221)}, kRmppAbort, kRmppBadLength},
      Row{{segment_of(1, F, 220)}, kRmppAbort, kRmppBadLength},
      Row{{segment_of(1, F, 500), segment_of(2, 0, 0), segment_of(3, 0, 0)},
          kRmppAbort,
          kRmppBadLength},
      Row{{segment_of(1, F, 500), segment_of(2, L, 220)}, kRmppAbort, kRmppBadLength},
      Row{{segment_of(1, F, RmppReceiver::kMaxMessage + 1)}, kRmppStop, kRmppResourcesExhausted});
  RmppReceiver receiver(0);
  std::optional<Mad> reply;
  for (const Mad& segment : row.segments) {
    CHECK(receiver.state() == RmppReceiver::State::kUnderWay);
    reply = receiver.receive(segment, 0);
  }
  CHECK(receiver.state() == RmppReceiver::State::kEnded);
  CHECK(receiver.held() == 0);
  REQUIRE(reply);
  CHECK(reply->rmpp_type() == row.type);
  CHECK(reply->rmpp_status() == row.status);
  CHECK(reply->method() == kGetTable);
  CHECK(!receiver.receive(segment_of(2, 0, 0), 0));
}

TEST_CASE("RMPP: a receiver acknowledges the first segment, window ends, duplicates and the last") {
  RmppReceiver receiver(0);
  auto said = [&](uint32_t number, uint8_t flags, uint32_t length) {
    std::optional<Mad> reply = receiver.receive(segment_of(number, flags, length), 7);
    if (!reply) return std::string("nothing");
    CHECK(reply->rmpp_type() == kRmppAck);
    CHECK(reply->tid() == 9);
    CHECK(reply->method() == kGetTable);
    return fmt::format("{}/{}", reply->rmpp_segment(), reply->rmpp_length());
  };
  CHECK(said(1, kRmppFirst, 0) == "1/65");
  CHECK(said(1, kRmppFirst, 0) == "1/65");
  CHECK(said(3, 0, 0) == "nothing");
  CHECK(said(3, 0, 0) == "1/65");
  CHECK(said(66, 0, 0) == "nothing");  // beyond the window
  CHECK(said(2, 0, 0) == "nothing");
  CHECK(said(2, 0, 0) == "3/65");
  for (uint32_t number = 4; number < 65; ++number) CHECK(said(number, 0, 0) == "nothing");
  CHECK(said(65, 0, 0) == "65/129");
  CHECK(said(66, kRmppLast, 21) == "66/129");
  CHECK(receiver.take().size() == 56 + 65 * 200 + 1);
  CHECK(receiver.state() == RmppReceiver::State::kComplete);
  CHECK(said(66, kRmppLast, 21) == "66/129");
  CHECK(said(5, 0, 0) == "66/129");
  CHECK(receiver.deadline() == 7 + RmppReceiver::kCompleteTimeNs);
  CHECK(!receiver.expire());
}

TEST_CASE("RMPP: an incomplete message is aborted and freed after its total time") {
  RmppReceiver receiver(5);
  (void)receiver.receive(segment_of(1, kRmppFirst, 0), 5);
  (void)receiver.receive(segment_of(2, 0, 0), 10);
  CHECK(receiver.deadline() == 5 + RmppReceiver::kTotalTimeNs);
  CHECK(receiver.held() != 0);
  std::optional<Mad> abort = receiver.expire();
  REQUIRE(abort);
  CHECK(abort->rmpp_type() == kRmppAbort);
  CHECK(abort->rmpp_status() == kRmppTotalTimeTooLong);
  CHECK(abort->method() == kGetTable);
  CHECK(receiver.held() == 0);
}

TEST_CASE("RMPP: a message beyond the maximum length is stopped") {
  RmppReceiver receiver(0);
  uint32_t number = 1;
  std::optional<Mad> reply;
  for (; receiver.state() == RmppReceiver::State::kUnderWay && number < 100000; ++number)
    reply = receiver.receive(segment_of(number, number == 1 ? kRmppFirst : 0, 0), 0);
  CHECK(number - 1 == RmppReceiver::kMaxMessage / 200 + 1);
  REQUIRE(reply);
  CHECK(reply->rmpp_type() == kRmppStop);
  CHECK(receiver.held() == 0);
}
