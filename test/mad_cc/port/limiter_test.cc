// Limiter by the rows of the feature table, M3 to M14, in each of the three semantics;
// limiter_files_test.cc has the files.
#include "mad_cc/port/limiter.h"

#include <catch2/catch.hpp>

#include "core/base/text.h"
#include "test/mad_cc/port/limited.h"

using namespace rocefs;

namespace {

constexpr MadSemantics kAll[] = {MadSemantics::kDoc, MadSemantics::kOfed4, MadSemantics::kOfed25};

// Script: `max=N queue=N time=N` configure, `timeout=N retries=N` apply to the requests that
// follow, `aN` and `bN` are N requests of that agent, `overN` ends the N-th request, `N ms` pass,
// `clear`.
struct Row {
  const char* rule;
  const char* script;
  const char* expected[3];  // by semantics
};

constexpr Row kRows[] = {
    {"M3: at most max_outstanding are outstanding",
     "max=2 a3",
     {"sends1 sends2 waits3 ", "sends1 sends2 waits3 ", "sends1 sends2 waits3 "}},
    {"M3: per port, in ofed25 per agent",
     "max=1 a2 b2",
     {"sends1 waits2 waits3 waits4 ", "sends1 waits2 waits3 waits4 ",
      "sends1 waits2 sends3 waits4 "}},
    {"M3: the default of max_outstanding",
     "a17",
     {"sends1 sends2 sends3 sends4 sends5 sends6 sends7 sends8 sends9 sends10 sends11 sends12 "
      "sends13 sends14 sends15 sends16 waits17 ",
      "sends1 sends2 sends3 sends4 sends5 sends6 sends7 sends8 sends9 sends10 sends11 sends12 "
      "sends13 sends14 sends15 sends16 waits17 ",
      "sends1 sends2 sends3 sends4 sends5 sends6 sends7 sends8 sends9 sends10 sends11 sends12 "
      "sends13 sends14 sends15 sends16 sends17 "}},
    {"M4: what waits goes in its order, one for one that is over",
     "max=2 a5 over2 over1",
     {"sends1 sends2 waits3 waits4 waits5 sent3 sent4 ",
      "sends1 sends2 waits3 waits4 waits5 sent3 sent4 ",
      "sends1 sends2 waits3 waits4 waits5 sent3 sent4 "}},
    {"M4: in ofed25 one agent's answers are not another's turn",
     "max=1 a2 b2 over3",
     {"sends1 waits2 waits3 waits4 ", "sends1 waits2 waits3 waits4 ",
      "sends1 waits2 sends3 waits4 sent4 "}},
    {"M4: a request does not overtake those that wait, ofed4 apart",
     "max=1 a3 max=2 a1",
     {"sends1 waits2 waits3 sent2 waits4 ", "sends1 waits2 waits3 sends4 ",
      "sends1 waits2 waits3 sent2 waits4 "}},
    {"M5: one that finds the queue full is refused",
     "max=1 queue=2 a5",
     {"sends1 waits2 waits3 refused4 refused5 ", "sends1 waits2 waits3 refused4 refused5 ",
      "sends1 waits2 waits3 refused4 refused5 "}},
    {"M5: per port, in ofed25 per agent",
     "max=1 queue=1 a3 b3",
     {"sends1 waits2 refused3 refused4 refused5 refused6 ",
      "sends1 waits2 refused3 refused4 refused5 refused6 ",
      "sends1 waits2 refused3 sends4 waits5 refused6 "}},
    {"M6: a request waits time_sa_mad, or what ofed4 and ofed25 say",
     "max=1 time=20 timeout=50 a2 19ms 1ms 10ms 970ms",
     {"sends1 waits2 expired2@20000us ", "sends1 waits2 expired2@30000us ", "sends1 waits2 "}},
    {"M6: all tries count in ofed4",
     "max=1 time=20 timeout=50 retries=3 a2 1s",
     {"sends1 waits2 expired2@20000us ", "sends1 waits2 expired2@180000us ", "sends1 waits2 "}},
    {"M6: in ofed4 one whose time-outs time_sa_mad uses up expires at once",
     "max=1 time=50 timeout=50 a2 0ms",
     {"sends1 waits2 ", "sends1 waits2 expired2@0us ", "sends1 waits2 "}},
    {"M6: in ofed4 as many retries as there can be are a long time, and no short one",
     "max=1 time=20 timeout=4294967295 retries=4294967295 a2 1s",
     {"sends1 waits2 expired2@20000us ", "sends1 waits2 ", "sends1 waits2 "}},
    {"M6: time_sa_mad is that of the moment when the request was queued",
     "max=1 time=20 timeout=50 a2 5ms time=3 a1 2s",
     {"sends1 waits2 waits3 expired3@8000us expired2@20000us ",
      "sends1 waits2 waits3 expired2@30000us expired3@52000us ", "sends1 waits2 waits3 "}},
    {"M6: an expired request makes room in the queue and is no drop",
     "max=1 queue=1 time=20 timeout=40 a2 20ms a2 over1",
     {"sends1 waits2 expired2@20000us waits3 refused4 sent3 ",
      "sends1 waits2 expired2@20000us waits3 refused4 sent3 ",
      "sends1 waits2 refused3 refused4 sent2 "}},
    {"M10: 0 is no limit and no time of its own",
     "max=0 a3",
     {"sends1 sends2 sends3 ", "sends1 sends2 sends3 ", "sends1 sends2 sends3 "}},
    {"M12: a raised max_outstanding drains the queue at once, ofed4 one for one that is over",
     "max=1 a4 max=3 over1",
     {"sends1 waits2 waits3 waits4 sent2 sent3 sent4 ", "sends1 waits2 waits3 waits4 sent2 ",
      "sends1 waits2 waits3 waits4 sent2 sent3 sent4 "}},
    {"M12: a lowered one cancels nothing, and what comes waits",
     "max=3 a4 max=1 over1 over2 over3",
     {"sends1 sends2 sends3 waits4 sent4 ", "sends1 sends2 sends3 waits4 sent4 ",
      "sends1 sends2 sends3 waits4 sent4 "}},
    {"M13: a lowered queue_size evicts nothing, what comes is refused until there is room",
     "max=1 queue=3 a4 queue=1 a1 over1 a1 over2 a1 over3 a1",
     {"sends1 waits2 waits3 waits4 refused5 sent2 refused6 sent3 refused7 sent4 waits8 ",
      "sends1 waits2 waits3 waits4 refused5 sent2 refused6 sent3 refused7 sent4 waits8 ",
      "sends1 waits2 waits3 waits4 refused5 sent2 refused6 sent3 refused7 sent4 waits8 "}},
    {"M14: one that is cancelled while it waits is nobody's turn",
     "max=1 a3 over2 over1",
     {"sends1 waits2 waits3 sent3 ", "sends1 waits2 waits3 sent3 ", "sends1 waits2 waits3 sent3 "}},
    {"M14: when the port goes all are forgotten, and none expires",
     "max=1 a3 clear over1 2s a2",
     {"sends1 waits2 waits3 sends4 waits5 ", "sends1 waits2 waits3 sends4 waits5 ",
      "sends1 waits2 waits3 sends4 waits5 "}},
};

uint64_t number_in(std::string_view word) {
  return std::stoull(std::string(word.substr(word.find_first_of("0123456789"))));
}

void step(Limited& port, std::string_view word) {
  using Settings = SaLimiter::Settings;
  uint64_t number = word == "clear" ? 0 : number_in(word);
  if (word == "clear") return port.limiter.clear();
  if (word.starts_with("max=")) return port.set(&Settings::max_outstanding, number);
  if (word.starts_with("queue=")) return port.set(&Settings::queue_size, number);
  if (word.starts_with("timeout=")) return void(port.timeout_ms = static_cast<uint32_t>(number));
  if (word.starts_with("time=")) return port.set(&Settings::time_sa_mad_ms, number);
  if (word.starts_with("retries=")) return void(port.retries = static_cast<uint32_t>(number));
  if (word.starts_with("over")) return port.limiter.finished(number, port.now);
  if (word.ends_with("ms")) return port.pass(static_cast<TimeNs>(number) * kMillisecond);
  if (word.ends_with("s")) return port.pass(static_cast<TimeNs>(number) * kSecond);
  for (; number > 0; --number) port.offer(static_cast<uint32_t>(word[0]));
}

}  // namespace

TEST_CASE("limiter: the limiter follows the feature table, in each of the semantics") {
  for (const Row& row : kRows) {
    for (MadSemantics semantics : kAll) {
      CAPTURE(row.rule, static_cast<int>(semantics));
      Limited port(semantics);
      for (std::string_view word : split(row.script, " ")) step(port, word);
      CHECK(port.log == row.expected[static_cast<size_t>(semantics)]);
    }
  }
}

TEST_CASE("limiter: M9: each of the semantics has its defaults") {
  using Settings = SaLimiter::Settings;
  CHECK(SaLimiter::defaults(MadSemantics::kDoc) == Settings{MadSemantics::kDoc, 16, 16, 20});
  CHECK(SaLimiter::defaults(MadSemantics::kOfed4) == Settings{MadSemantics::kOfed4, 16, 65536, 20});
  CHECK(SaLimiter::defaults(MadSemantics::kOfed25) == Settings{MadSemantics::kOfed25, 0, 65536, 0});
}

TEST_CASE("limiter: M11: only SubnAdm Get and Set with a time-out are limited") {
  for (unsigned mgmt_class = 0; mgmt_class < 256; ++mgmt_class) {
    for (unsigned method = 0; method < 256; ++method) {
      mad::Mad mad;
      mad.bytes[1] = static_cast<uint8_t>(mgmt_class);
      mad.set_method(static_cast<uint8_t>(method));
      bool limited = mgmt_class == 3 && (method == 1 || method == 2);
      REQUIRE(SaLimiter::applies_to(mad, 1) == limited);
      REQUIRE_FALSE(SaLimiter::applies_to(mad, 0));
    }
  }
}

TEST_CASE("limiter: ofed25 divides time_sa_mad among the tries; others keep the time-out") {
  Limited port(MadSemantics::kOfed25);
  auto timeout = [&](uint32_t timeout_ms, uint32_t retries) {
    return port.limiter.response_timeout_ms({1, 1, timeout_ms, retries});
  };
  CHECK(timeout(50, 3) == 50);  // time_sa_mad is 0
  port.set(&SaLimiter::Settings::time_sa_mad_ms, 20);
  CHECK(timeout(50, 0) == 20);
  CHECK(timeout(50, 3) == 5);
  CHECK(timeout(50, 6) == 2);
  CHECK(timeout(50, 99) == 1);
  CHECK(timeout(50, UINT32_MAX) == 1);
  port.set(&SaLimiter::Settings::time_sa_mad_ms, uint64_t{1} << 40);
  CHECK(timeout(50, 0) == UINT32_MAX);
  for (MadSemantics semantics : {MadSemantics::kDoc, MadSemantics::kOfed4}) {
    port.limiter.configure(SaLimiter::defaults(semantics), port.now);
    CHECK(timeout(50, 3) == 50);
    CHECK(timeout(UINT32_MAX, UINT32_MAX) == UINT32_MAX);
  }
}

TEST_CASE("limiter: of 200 requests at once 16 are sent, 16 expire at 20 ms and 168 are refused") {
  Limited port(MadSemantics::kDoc);
  for (int i = 0; i < 200; ++i) port.offer(1);
  CHECK(port.counts() == "outstanding 16 queued 16 sent 16 drops 168 expired 0");
  port.pass(20 * kMillisecond - 1);
  CHECK(port.counts() == "outstanding 16 queued 16 sent 16 drops 168 expired 0");
  port.pass(1);
  CHECK(port.counts() == "outstanding 16 queued 0 sent 16 drops 168 expired 16");
  port.pass(80 * kMillisecond);
  for (uint64_t id = 1; id <= 200; ++id) port.limiter.finished(id, port.now);
  CHECK(port.counts() == "outstanding 0 queued 0 sent 16 drops 168 expired 16");
}

TEST_CASE("limiter: max_outstanding of 64 drains a queue of 16 at once") {
  Limited port(MadSemantics::kDoc);
  for (int i = 0; i < 200; ++i) port.offer(1);
  port.pass(10 * kMillisecond);
  port.set(&SaLimiter::Settings::max_outstanding, 64);
  CHECK(port.counts() == "outstanding 32 queued 0 sent 32 drops 168 expired 0");
  CHECK(port.limiter.next_expiry() == kNever);
  for (int i = 0; i < 33; ++i) port.offer(1);
  CHECK(port.counts() == "outstanding 64 queued 1 sent 64 drops 168 expired 0");
}

TEST_CASE("limiter: a change of semantics loses no request under way") {
  for (MadSemantics from : kAll) {
    for (MadSemantics to : kAll) {
      CAPTURE(static_cast<int>(from), static_cast<int>(to));
      Limited port(from);
      port.limiter.configure({from, 1, 16, 20}, port.now);
      for (uint32_t agent : {1, 1, 1, 2, 2, 3}) port.offer(agent);
      port.limiter.configure({to, 1, 16, 20}, port.now);
      for (int round = 0; round < 6; ++round) {
        for (uint64_t id = 1; id <= 6; ++id) {
          if (port.log.find(fmt::format("sends{} ", id)) != port.log.npos ||
              port.log.find(fmt::format("sent{} ", id)) != port.log.npos) {
            port.limiter.finished(id, port.now);
          }
        }
      }
      CHECK(port.counts() == "outstanding 0 queued 0 sent 6 drops 0 expired 0");
    }
  }
}

TEST_CASE("limiter: a queued request keeps its deadline under other semantics") {
  Limited port(MadSemantics::kDoc);
  port.set(&SaLimiter::Settings::max_outstanding, 1);
  port.offer(1);
  port.offer(1);
  port.limiter.configure({MadSemantics::kOfed25, 1, 16, 0}, port.now);
  port.offer(1);
  port.pass(kSecond);
  CHECK(port.log == "sends1 waits2 waits3 expired2@20000us ");
}

TEST_CASE("limiter: a sender may finish and offer requests from within transmit") {
  for (MadSemantics semantics : kAll) {
    CAPTURE(static_cast<int>(semantics));
    Limited port(semantics);
    port.limiter.configure({semantics, 1, 1 << 20, 1000}, port.now);
    constexpr uint64_t kRequests = 300'000;  // deep enough for any stack
    for (uint64_t i = 0; i < kRequests; ++i) port.offer(1);
    port.log.clear();
    bool offered = false;
    port.on_transmit = [&](uint64_t id) {
      port.log.clear();
      port.limiter.finished(id, port.now);
      if (std::exchange(offered, true)) return;
      CHECK(port.offer(1) == (semantics == MadSemantics::kOfed4 ? SaLimiter::Verdict::kSend
                                                                : SaLimiter::Verdict::kWait));
    };
    port.limiter.finished(1, port.now);
    if (semantics == MadSemantics::kOfed4) port.limiter.finished(kRequests + 1, port.now);
    while (port.limiter.unfinished()) port.limiter.expire(port.now);
    CHECK(port.counts() ==
          fmt::format("outstanding 0 queued 0 sent {} drops 0 expired 0", kRequests + 1));
  }
}

TEST_CASE("limiter: a request offered from within expire waits for the next call") {
  Limited port(MadSemantics::kOfed4);
  port.limiter.configure({MadSemantics::kOfed4, 1, 16, 1000}, port.now);
  port.offer(1);
  port.on_expire = [&](uint64_t) { port.offer(1); };
  port.offer(1);
  port.limiter.expire(port.now);
  CHECK(port.log == "sends1 waits2 expired2@0us waits3 ");
  CHECK(port.limiter.next_expiry() == port.now);
}

TEST_CASE("limiter: the port may be removed from within transmit or expire") {
  for (MadSemantics semantics : kAll) {
    Limited port(semantics);
    port.limiter.configure({semantics, 1, 16, 20}, port.now);
    port.timeout_ms = 30;
    port.on_transmit = port.on_expire = [&](uint64_t) { port.limiter.clear(); };
    for (int i = 0; i < 4; ++i) port.offer(1);
    port.limiter.finished(1, port.now);
    CHECK(port.log == "sends1 waits2 waits3 waits4 sent2 ");
    for (int i = 0; i < 4; ++i) port.offer(1);
    port.pass(kSecond);
    CHECK(port.counts() == (semantics == MadSemantics::kOfed25
                                ? "outstanding 1 queued 3 sent 3 drops 0 expired 0"
                                : "outstanding 0 queued 0 sent 3 drops 0 expired 1"));
  }
}

TEST_CASE("limiter: requests that are due expire in slices, and none of them is sent meanwhile") {
  constexpr uint64_t kSlice = SaLimiter::kSlice;
  Limited rig(MadSemantics::kDoc);
  rig.set(&SaLimiter::Settings::queue_size, 3 * kSlice);
  for (uint64_t i = 0; i < 16 + 3 * kSlice; ++i) rig.offer(1);
  CHECK(rig.counts() == "outstanding 16 queued 3072 sent 16 drops 0 expired 0");
  rig.log.clear();
  rig.now = 20 * kMillisecond;
  rig.limiter.expire(rig.now);
  CHECK(rig.counts() == "outstanding 16 queued 2048 sent 16 drops 0 expired 1024");
  CHECK(rig.limiter.next_expiry() == rig.now);
  CHECK(rig.limiter.unfinished());
  CHECK(rig.log.starts_with("expired17@20000us expired18@20000us "));
  CHECK(rig.log.ends_with("expired1040@20000us "));
  // Expiring requests do not take the place of a finished one.
  rig.log.clear();
  rig.limiter.finished(1, rig.now);
  CHECK(rig.log.empty());
  // New requests are accepted as if the expiring ones were gone, and one more.
  for (uint64_t i = 0; i < 3 * kSlice + 1; ++i) rig.offer(1);
  CHECK(rig.limiter.counters().drops.get() == 0);
  rig.offer(1);
  while (rig.limiter.unfinished()) rig.limiter.expire(rig.now);
  CHECK(rig.counts() == "outstanding 16 queued 3072 sent 17 drops 1 expired 3072");
  CHECK(rig.limiter.next_expiry() == 40 * kMillisecond);
}

TEST_CASE("limiter: a raised limit releases queued requests in slices, first in, first out") {
  constexpr uint64_t kSlice = SaLimiter::kSlice;
  MadSemantics semantics = GENERATE(MadSemantics::kDoc, MadSemantics::kOfed25);
  Limited rig(semantics);
  rig.set(&SaLimiter::Settings::queue_size, 3 * kSlice);
  rig.set(&SaLimiter::Settings::max_outstanding, 16);
  for (uint64_t i = 0; i < 16 + 3 * kSlice; ++i) rig.offer(1);
  rig.log.clear();
  rig.set(&SaLimiter::Settings::max_outstanding, 1 << 20);
  CHECK(rig.limiter.counters().sent.get() == 16 + kSlice);
  CHECK(rig.limiter.next_expiry() == 0);
  for (uint64_t i = 0; i < kSlice + 1; ++i) rig.offer(1);
  CHECK(rig.limiter.counters().drops.get() == 0);
  while (rig.limiter.unfinished()) rig.limiter.expire(rig.now);
  CHECK(rig.counts() == "outstanding 4113 queued 0 sent 4113 drops 0 expired 0");
  CHECK(rig.limiter.next_expiry() == kNever);
  std::string sent;
  for (size_t at = 0; (at = rig.log.find("sent", at)) != rig.log.npos; at += 4)
    sent += rig.log.substr(at, rig.log.find(' ', at) - at + 1);
  std::string all;
  for (uint64_t id = 17; id <= 16 + 4 * kSlice + 1; ++id) all += fmt::format("sent{} ", id);
  CHECK(sent == all);
}
