// sa/send: bursts through a port's MAD layer and its limiter, with exact counts.
#include "mad_cc/files/generator.h"

#include <catch2/catch.hpp>

#include "core/base/rng.h"
#include "test/mad_cc/files/sa_rig.h"

using namespace rocefs;

namespace {

std::string ended(SaRig& rig) {
  std::string text = rig.show("sa/send");
  size_t colon = text.find(": ");
  return colon == text.npos ? text : text.substr(colon + 2);
}

uint64_t number_behind(const std::string& text, const std::string& word) {
  return std::stoull(text.substr(text.find(word + " ") + word.size() + 1));
}

}  // namespace

TEST_CASE("burst: all requests are answered if nothing delays them") {
  SaRig rig;
  CHECK(rig.show("sa/send") == "none\n");
  CHECK(rig.store("sa/send", "burst 16 timeout=50ms\n") == "ok");
  CHECK(
      rig.show("sa/send") ==
      "burst 16 port=mb_0 timeout=50ms retries=0: answered 0 busy 0 timed_out 0 expired 0 refused "
      "0 flushed 0 waiting 16\n");
  CHECK(rig.engine->outstanding().flows == 1);
  rig.pass(0);
  CHECK(ended(rig) == "answered 16 busy 0 timed_out 0 expired 0 refused 0 flushed 0 waiting 0\n");
  CHECK(rig.engine->outstanding().flows == 0);
  CHECK(rig.counts() == "0 0 16 0 0 ");
}

TEST_CASE("burst: of 200 requests at once 16 are sent, 16 wait and 168 are refused") {
  SaRig rig;
  rig.delay = 100 * kMillisecond;
  CHECK(rig.store("sa/send", "burst 200 timeout=500ms") == "ok");
  CHECK(ended(rig) == "answered 0 busy 0 timed_out 0 expired 0 refused 168 flushed 0 waiting 32\n");
  CHECK(rig.counts() == "16 16 16 0 168 ");
  rig.pass(20 * kMillisecond - 1);
  CHECK(rig.counts() == "16 16 16 0 168 ");
  rig.pass(1);
  CHECK(rig.counts() == "16 0 16 16 168 ");
  CHECK(ended(rig) ==
        "answered 0 busy 0 timed_out 0 expired 16 refused 168 flushed 0 waiting 16\n");
  rig.pass(80 * kMillisecond - 1);
  CHECK(rig.counts() == "16 0 16 16 168 ");
  rig.pass(1);
  CHECK(ended(rig) ==
        "answered 16 busy 0 timed_out 0 expired 16 refused 168 flushed 0 waiting 0\n");
  CHECK(rig.counts() == "0 0 16 16 168 ");
  CHECK(rig.store("mb_0/mad_sa_cc/1/drops", "0") == "ok");
  CHECK(rig.counts() == "0 0 16 16 0 ");
}

TEST_CASE("burst: a max_outstanding of 64 drains the queue at once") {
  SaRig rig;
  rig.delay = 100 * kMillisecond;
  CHECK(rig.store("sa/send", "burst 200 timeout=500ms") == "ok");
  rig.pass(10 * kMillisecond);
  CHECK(rig.transmitted == 16);
  CHECK(rig.store("mb_0/mad_sa_cc/1/max_outstanding", "64") == "ok");
  CHECK(rig.transmitted == 32);
  CHECK(rig.counts() == "32 0 32 0 168 ");
  rig.pass(kSecond);
  CHECK(ended(rig) == "answered 32 busy 0 timed_out 0 expired 0 refused 168 flushed 0 waiting 0\n");
}

TEST_CASE("burst: an unanswered request times out after all its retries") {
  SaRig rig;
  rig.delay = kNever;
  CHECK(rig.store("sa/send", "burst 10 port=mb_0/2 timeout=50ms retries=2") == "ok");
  rig.pass(150 * kMillisecond - 1);
  CHECK(rig.transmitted == 30);
  CHECK(ended(rig) == "answered 0 busy 0 timed_out 0 expired 0 refused 0 flushed 0 waiting 10\n");
  rig.pass(1);
  CHECK(rig.show("sa/send") ==
        "burst 10 port=mb_0/2 timeout=50ms retries=2: answered 0 busy 0 timed_out 10 expired 0 "
        "refused 0 flushed 0 waiting 0\n");
  CHECK(rig.counts(1) == "0 0 0 0 0 ");
  CHECK(rig.counts(2) == "0 0 10 0 0 ");
}

TEST_CASE("burst: answers with status Busy are counted separately") {
  SaRig rig;
  rig.busy = 3;
  CHECK(rig.store("sa/send", "burst 10") == "ok");
  rig.pass(0);
  CHECK(ended(rig) == "answered 7 busy 3 timed_out 0 expired 0 refused 0 flushed 0 waiting 0\n");
}

TEST_CASE("burst: a second burst is EBUSY until the first ends, and does not change its counts") {
  SaRig rig;
  rig.delay = kMillisecond;
  CHECK(rig.store("sa/send", "burst 5") == "ok");
  CHECK(rig.store("sa/send", "burst 7") == "EBUSY");
  CHECK(ended(rig) == "answered 0 busy 0 timed_out 0 expired 0 refused 0 flushed 0 waiting 5\n");
  rig.pass(kMillisecond);
  CHECK(rig.store("sa/send", "burst 7") == "ok");
  CHECK(ended(rig) == "answered 0 busy 0 timed_out 0 expired 0 refused 0 flushed 0 waiting 7\n");
}

TEST_CASE("burst: stop, or the removal of the port, flushes the waiting requests") {
  for (bool leaves : {false, true}) {
    SaRig rig;
    rig.delay = 30 * kMillisecond;
    CHECK(rig.store("sa/send", "burst 3000 timeout=500ms") == "ok");
    if (leaves) {
      rig.ports[0]->leave();
    } else {
      CHECK(rig.store("sa/send", "stop\n") == "ok");
    }
    rig.pass(0);
    CHECK(ended(rig) ==
          "answered 0 busy 0 timed_out 0 expired 0 refused 992 flushed 2008 waiting 0\n");
    CHECK(rig.engine->outstanding().flows == 0);
    CHECK(rig.counts() == "0 0 16 0 992 ");
    CHECK(rig.ports[0]->sends_under_way() == 0);
    rig.pass(kSecond);
    CHECK(rig.store("sa/send", "stop") == "ok");  // none is under way: nothing
    CHECK(rig.store("sa/send", "burst 1") == (leaves ? "ENODEV" : "ok"));
    rig.ports[0]->arrive();
  }
}

TEST_CASE("burst: a reset ends a burst and forgets it") {
  SaRig rig;
  rig.delay = kSecond;
  CHECK(rig.store("sa/send", "burst 200") == "ok");
  CHECK(rig.store("debug/reset", "1") == "ok");
  CHECK(rig.show("sa/send") == "none\n");
  CHECK(rig.counts() == "0 0 0 0 0 ");
  CHECK(rig.engine->outstanding().flows == 0);
  CHECK(rig.store("sa/send", "burst 200") == "ok");
  CHECK(rig.counts() == "16 16 16 0 168 ");
}

TEST_CASE("burst: a burst that cannot be sent is refused with the reason") {
  SaRig rig;
  CHECK(rig.store("sa/send", "burst 0") == "EINVAL");
  CHECK(rig.store("sa/send", "burst 1 port=mb_1") == "EINVAL");
  CHECK(rig.reason == "no port mb_1");
  rig.ports[1]->leave();
  CHECK(rig.store("sa/send", "burst 1 port=mb_0/2") == "ENODEV");
  CHECK(rig.show("sa/send") == "none\n");
  CHECK(rig.engine->outstanding().flows == 0);
}

TEST_CASE("burst: a million requests that wait at once are handled in slices") {
  SaRig rig;
  rig.delay = kNever;
  CHECK(rig.store("mb_0/mad_sa_cc/1/queue_size", "1048576") == "ok");
  CHECK(rig.store("mb_0/mad_sa_cc/1/time_sa_mad", "10000") == "ok");
  CHECK(rig.store("sa/send", "burst 1000000 timeout=100s") == "ok");
  CHECK(rig.counts() == "16 1008 16 0 0 ");  // the first slice
  rig.pass(0);
  CHECK(rig.counts() == "16 999984 16 0 0 ");
  rig.pass(10 * kSecond);
  CHECK(rig.counts() == "16 0 16 999984 0 ");
  CHECK(ended(rig) ==
        "answered 0 busy 0 timed_out 0 expired 999984 refused 0 flushed 0 waiting 16\n");
  rig.pass(90 * kSecond);
  CHECK(ended(rig) ==
        "answered 0 busy 0 timed_out 16 expired 999984 refused 0 flushed 0 waiting 0\n");
  CHECK(rig.ports[0]->sends_under_way() == 0);
}

TEST_CASE("burst: in 1000 random bursts each request ends once, as the limiter counts it") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "burst");
    SaRig rig(std::array{"doc", "ofed4", "ofed25"}[rng.below(3)]);
    rig.delay = rng.below(8) == 0 ? kNever : static_cast<TimeNs>(rng.below(60)) * kMillisecond;
    CHECK(rig.store("mb_0/mad_sa_cc/1/max_outstanding", std::to_string(1 + rng.below(40))) == "ok");
    CHECK(rig.store("mb_0/mad_sa_cc/1/queue_size", std::to_string(16 + rng.below(400))) == "ok");
    uint64_t count = 1 + rng.below(500);
    CHECK(rig.store("sa/send", fmt::format("burst {} timeout={}ms retries={}", count,
                                           1 + rng.below(80), rng.below(3))) == "ok");
    for (int step = 0; step < 5; ++step) {
      rig.pass(static_cast<TimeNs>(rng.below(20)) * kMillisecond);
      std::string text = ended(rig);
      CHECK(number_behind(text, "refused") == std::stoull(rig.show("mb_0/mad_sa_cc/1/drops")));
      uint64_t out = std::stoull(rig.show("mb_0/mad_sa_cc/1/outstanding"));
      uint64_t queued = std::stoull(rig.show("mb_0/mad_sa_cc/1/queued"));
      REQUIRE(number_behind(text, "waiting") == out + queued);
    }
    rig.pass(kSecond * 1000);
    std::string text = ended(rig);
    uint64_t sent = std::stoull(rig.show("mb_0/mad_sa_cc/1/sent"));
    REQUIRE(number_behind(text, "waiting") == 0);
    REQUIRE(number_behind(text, "answered") + number_behind(text, "timed_out") == sent);
    REQUIRE(number_behind(text, "expired") == std::stoull(rig.show("mb_0/mad_sa_cc/1/expired")));
    REQUIRE(sent + number_behind(text, "expired") + number_behind(text, "refused") == count);
    REQUIRE(rig.engine->outstanding().flows == 0);
  }
}
