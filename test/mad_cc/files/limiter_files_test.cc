// mad_sa_cc/<port>: the rows of the feature table that are files, M1, M2 and M7 to M10, in each of
// the three semantics, and the effects of sa/semantics on them.
#include "mad_cc/files/limiter_files.h"

#include <catch2/catch.hpp>
#include <future>

#include "core/base/text.h"
#include "core/tree/clock_files.h"
#include "core/tree/knob_file.h"
#include "test/mad_cc/files/sa_rig.h"

using namespace rocefs;

namespace {

constexpr std::string_view kWords[] = {"doc", "ofed4", "ofed25"};

struct Row {
  const char* rule;
  const char* file;
  const char* text;
  const char* expected[3];  // by semantics: what cat says then, or the error
};

constexpr Row kRows[] = {
    {"M2: echo 32", "max_outstanding", "32\n", {"32", "32", "32"}},
    {"M8: the least", "max_outstanding", "1", {"1", "1", "1"}},
    {"M8: the most", "max_outstanding", "1048576", {"1048576", "1048576", "1048576"}},
    {"M8: more", "max_outstanding", "1048577", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M10: off", "max_outstanding", "0", {"EINVAL", "EINVAL", "0"}},
    {"M8: the least", "queue_size", "16", {"16", "16", "16"}},
    {"M8: less", "queue_size", "15", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M10: no queue is no setting", "queue_size", "0", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: the most", "queue_size", "1048576", {"1048576", "1048576", "1048576"}},
    {"M8: more", "queue_size", "1048577", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: the least", "time_sa_mad", "1", {"1", "1", "1"}},
    {"M8: the most", "time_sa_mad", "10000", {"10000", "10000", "10000"}},
    {"M8: more", "time_sa_mad", "10001", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M10: auto", "time_sa_mad", "0", {"EINVAL", "EINVAL", "0"}},
    {"M8: kstrtol, hex", "max_outstanding", "0x20", {"32", "32", "32"}},
    {"M8: kstrtol, octal", "max_outstanding", "040", {"32", "32", "32"}},
    {"M8: kstrtol, a plus", "max_outstanding", "+32\n", {"32", "32", "32"}},
    {"M8: a negative one", "max_outstanding", "-1", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: a blank in front", "max_outstanding", " 32", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: a blank behind", "max_outstanding", "32 ", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: two newlines", "max_outstanding", "32\n\n", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: nothing", "max_outstanding", "", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: a newline", "max_outstanding", "\n", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: a word", "time_sa_mad", "20ms", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M8: of no type", "queue_size", "99999999999999999999", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M7: echo 0", "drops", "0\n", {"0", "0", "0"}},
    {"M7: anything else", "drops", "1", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M7: anything else", "drops", "", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M7: anything else", "drops", "-0 ", {"EINVAL", "EINVAL", "EINVAL"}},
    {"M7: anything else", "drops", "18446744073709551616", {"EINVAL", "EINVAL", "EINVAL"}},
};

constexpr const char* kDefaults[] = {"16 16 20 ", "16 65536 20 ", "0 65536 0 "};

// Runs what the core has posted.
void settle(SaRig& rig) {
  rig.loop.post([&] { rig.loop.stop(); });
  rig.loop.run();
}

// Rig with a clock and a run that is logged and replayed. Its engine may run.
struct LoggedRun {
  SaRig rig;
  std::vector<std::string> failed;
  ClockFiles clock{rig.tree, "clock", *rig.engine,
                   [this](const std::string& line) { failed.push_back(line); }};

  ~LoggedRun() { rig.engine->stop(); }
  std::string store(const std::string& path, std::string_view text) {
    auto operation = std::make_shared<Operation>(Caller{});
    operation->on_accepted([&](std::string_view order, std::optional<Moment> applied) {
      if (applied) clock.stored(path, order, *applied);
    });
    std::optional<std::string> said;
    rig.tree.resolve(path)->file->store(text, operation, [&](Result<void> result) {
      said = result ? "ok" : result.error().reason;
    });
    while (!said) settle(rig);
    return *said;
  }
  std::string text(const std::string& path) {
    std::string text;
    dynamic_cast<Stream&>(*rig.tree.resolve(path)->file).content([&](Result<std::string> content) {
      text = *content;
    });
    return text;
  }
};

}  // namespace

TEST_CASE("mad_sa_cc: the files follow the feature table, in each of the semantics") {
  for (size_t semantics = 0; semantics < 3; ++semantics) {
    SaRig rig(kWords[semantics]);
    for (const Row& row : kRows) {
      CAPTURE(row.rule, row.file, row.text, kWords[semantics]);
      std::string path = fmt::format("mb_0/mad_sa_cc/1/{}", row.file);
      rig.ports[0]->limiter().counters().drops.set(3);
      std::string before = rig.show(path), expected = row.expected[semantics];
      std::string said = rig.store(path, row.text);
      if (expected == "EINVAL") {
        CHECK(said == "EINVAL");
        CHECK_FALSE(rig.reason.empty());
        CHECK(rig.show(path) == before);
      } else {
        CHECK(said == "ok");
        CHECK(rig.show(path) == expected + "\n");
      }
      const SaLimiter::Settings& set = rig.limiter();
      CHECK(fmt::format("{} {} {} ", set.max_outstanding, set.queue_size, set.time_sa_mad_ms) ==
            rig.limits());
    }
    CHECK(rig.limits(2) == kDefaults[semantics]);  // M1: ports are independent
  }
}

TEST_CASE("mad_sa_cc: M1: each port has four files of mode 0644 and four of mode 0444") {
  SaRig rig;
  for (int number : {1, 2}) {
    for (const char* name : {"drops", "max_outstanding", "queue_size", "time_sa_mad"}) {
      CHECK(rig.tree.resolve(fmt::format("mb_0/mad_sa_cc/{}/{}", number, name))->mode == 0644);
    }
    for (const char* name : {"outstanding", "queued", "sent", "expired"}) {
      CHECK(rig.tree.resolve(fmt::format("mb_0/mad_sa_cc/{}/{}", number, name))->mode == 0444);
    }
    CHECK(rig.tree.resolve(fmt::format("mb_0/mad_sa_cc/{}", number))->children.size() == 8);
  }
  CHECK(rig.tree.resolve("mb_0/mad_sa_cc")->children.size() == 2);
}

TEST_CASE("mad_sa_cc: M8, M10: the documented ranges are those of the semantics in force") {
  SaRig rig;
  auto values = [&](const std::string& name) {
    return rig.tree.resolve("mb_0/mad_sa_cc/1/" + name)->file->doc().values;
  };
  CHECK(values("max_outstanding") == "1 to 1048576");
  CHECK(values("queue_size") == "16 to 1048576");
  CHECK(values("time_sa_mad") == "1 to 10000 (ms)");
  CHECK(values("drops") == "0");
  CHECK(rig.store("sa/semantics", "ofed25") == "ok");
  CHECK(values("max_outstanding") == "0 to 1048576");
  CHECK(values("queue_size") == "16 to 1048576");
  CHECK(values("time_sa_mad") == "0 to 10000 (ms)");
}

TEST_CASE("mad_sa_cc: M9: a port begins with the defaults of its semantics") {
  for (size_t semantics = 0; semantics < 3; ++semantics) {
    SaRig rig(kWords[semantics]);
    for (int number : {1, 2}) {
      CHECK(rig.limits(number) == kDefaults[semantics]);
      CHECK(rig.limiter(number) == SaLimiter::defaults(static_cast<MadSemantics>(semantics)));
    }
    CHECK(rig.show("sa/semantics") == std::string(kWords[semantics]) + "\n");
  }
}

TEST_CASE("mad_sa_cc: M9: a store to sa/semantics gives its defaults to every port") {
  SaRig rig;
  for (size_t semantics : {1, 2, 1, 0, 2, 0}) {
    CHECK(rig.store("mb_0/mad_sa_cc/2/max_outstanding", "7") == "ok");
    CHECK(rig.store("sa/semantics", kWords[semantics]) == "ok");
    for (int number : {1, 2}) {
      CHECK(rig.limits(number) == kDefaults[semantics]);
      CHECK(rig.limiter(number) == SaLimiter::defaults(static_cast<MadSemantics>(semantics)));
    }
  }
  CHECK(rig.store("sa/semantics", "ofed5") == "EINVAL");
  CHECK(rig.store("sa/delay", "1ms") == "ok");  // has no consequences
  CHECK(rig.store("mb_0/mad_sa_cc/1/max_outstanding", "7") == "ok");
  CHECK(rig.store("sa/delay", "2ms") == "ok");
  CHECK(rig.limits() == "7 16 20 ");
}

TEST_CASE("mad_sa_cc: a transaction of semantics and a limit is checked as a whole") {
  SaRig rig;
  auto set = [&](std::string_view text) {
    std::string said = "nothing";
    store_knobs(*rig.engine, *knob_changes(rig.tree, *parse_assignments(text)),
                [&](Result<Moment> result) { said = result ? "ok" : result.error().reason; });
    return said;
  };
  CHECK(set("mb_0/mad_sa_cc/1/max_outstanding=0 sa/semantics=ofed4") ==
        "mb_0/mad_sa_cc/1/max_outstanding: max_outstanding: 0 is outside 1 to 1048576 where "
        "sa/semantics is not ofed25");
  CHECK(rig.show("sa/semantics") == "doc\n");
  CHECK(set("mb_0/mad_sa_cc/1/time_sa_mad=5 sa/semantics=ofed25") == "ok");
  CHECK(rig.limits(1) == "0 65536 5 ");
  CHECK(rig.limits(2) == "0 65536 0 ");
}

TEST_CASE("mad_sa_cc: a reset restores the configured values and clears the counters") {
  for (size_t at_first = 0; at_first < 3; ++at_first) {
    CAPTURE(kWords[at_first]);
    SaRig rig(kWords[at_first]);
    CHECK(rig.store("mb_0/mad_sa_cc/1/max_outstanding", "5") == "ok");
    find_knob(rig.tree, "mb_0/mad_sa_cc/1/max_outstanding")->set()->keep_as_defaults();
    for (size_t then = 0; then < 3; ++then) {
      CHECK(rig.store("sa/semantics", kWords[then]) == "ok");
      CHECK(rig.store("mb_0/mad_sa_cc/2/max_outstanding", "9") == "ok");
      LimiterCounters& counters = rig.ports[1]->limiter().counters();
      for (Counter* one : {&counters.drops, &counters.sent, &counters.expired}) one->set(4);
      counters.outstanding.set(2);
      counters.queued.set(1);
      CHECK(rig.counts(2) == "2 1 4 4 4 ");
      CHECK(rig.store("debug/reset", "1") == "ok");
      CHECK(rig.counts(2) == "2 1 0 0 0 ");
      CHECK(rig.limits(1) ==
            fmt::format("5{}", std::string(kDefaults[at_first]).substr(at_first == 2 ? 1 : 2)));
      CHECK(rig.limits(2) == kDefaults[at_first]);
      CHECK(static_cast<size_t>(rig.limiter(1).semantics) == at_first);
    }
  }
}

TEST_CASE("mad_sa_cc: a device that is bound again has the defaults of the semantics in force") {
  SaRig rig;
  auto again = [&] {
    rig.limiters->unbind(*rig.ports[0]);
    rig.tree.remove("mb_0/mad_sa_cc/1");
    rig.limiters->bind("mb_0", 1, *rig.ports[0]);
  };
  CHECK(rig.store("mb_0/mad_sa_cc/1/queue_size", "99") == "ok");
  rig.ports[0]->limiter().counters().drops.set(3);
  again();
  CHECK(rig.limits() == "16 16 20 ");
  CHECK(rig.counts() == "0 0 0 0 0 ");
  CHECK(rig.limiter() == SaLimiter::defaults(MadSemantics::kDoc));
  CHECK(rig.store("sa/semantics", "ofed4") == "ok");
  again();
  CHECK(rig.limits() == "16 65536 20 ");
  CHECK(rig.limiter() == SaLimiter::defaults(MadSemantics::kOfed4));
  CHECK(rig.store("debug/reset", "1") == "ok");
  CHECK(rig.limits() == "16 16 20 ");
  CHECK(rig.limiter() == SaLimiter::defaults(MadSemantics::kDoc));
}

TEST_CASE("mad_sa_cc: semantics stored while a device is unbound apply when it is bound") {
  SaRig rig;
  rig.limiters->unbind(*rig.ports[0]);
  rig.tree.remove("mb_0/mad_sa_cc/1");
  CHECK(rig.store("sa/semantics", "ofed25") == "ok");
  rig.limiters->bind("mb_0", 1, *rig.ports[0]);
  CHECK(rig.limits() == "0 65536 0 ");
  CHECK(rig.store("mb_0/mad_sa_cc/1/max_outstanding", "0") == "ok");
}

TEST_CASE("mad_sa_cc: a device bound during a store of semantics gets the new ones") {
  SaRig rig;
  rig.limiters->unbind(*rig.ports[0]);
  rig.tree.remove("mb_0/mad_sa_cc/1");
  KnobTransaction store({{rig.files->knobs(), kSemanticsKnob, uint64_t{2}, {}}});
  REQUIRE(store.check());
  store.apply();
  rig.limiters->bind("mb_0", 1, *rig.ports[0]);
  CHECK(rig.limits() == "16 16 20 ");
  store.publish();
  settle(rig);
  for (int number : {1, 2}) {
    CHECK(rig.limits(number) == "0 65536 0 ");
    CHECK(rig.limiter(number) == SaLimiter::defaults(MadSemantics::kOfed25));
  }
}

TEST_CASE(
    "mad_sa_cc: a device bound while the core is busy has new counters and the new semantics") {
  SaRig rig;
  rig.limiters->unbind(*rig.ports[0]);
  rig.tree.remove("mb_0/mad_sa_cc/1");
  rig.ports[0]->configure_limiter({MadSemantics::kDoc, 7, 77, 7});
  rig.ports[0]->limiter().counters().drops.set(3);
  KnobTransaction store({{rig.files->knobs(), kSemanticsKnob, uint64_t{2}, {}}});
  REQUIRE(store.check());
  store.apply();
  std::promise<void> stuck, go_on;
  rig.engine->start();
  Task block = [&] {
    stuck.set_value();
    go_on.get_future().wait();
  };
  REQUIRE(rig.engine->post(block));
  stuck.get_future().wait();
  for (Task nothing = [] {}; rig.engine->post(nothing);) nothing = [] {};
  rig.limiters->bind("mb_0", 1, *rig.ports[0]);
  store.publish();
  settle(rig);
  CHECK(rig.limits() == "16 16 20 ");
  CHECK(rig.counts() == "0 0 0 0 3 ");
  go_on.set_value();
  TimeNs end = monotonic_ns() + 20 * kSecond;
  while (rig.limits() != "0 65536 0 " && monotonic_ns() < end) settle(rig);
  rig.engine->stop();
  CHECK(rig.limits() == "0 65536 0 ");
  CHECK(rig.counts() == "0 0 0 0 0 ");
  CHECK(rig.limiter() == SaLimiter::defaults(MadSemantics::kOfed25));
}

TEST_CASE("mad_sa_cc: clearing the drops is logged and replayed") {
  LoggedRun first, second;
  const std::string drops = "mb_0/mad_sa_cc/1/drops";
  first.rig.pass(5 * kMillisecond);
  first.rig.ports[0]->limiter().counters().drops.set(3);
  REQUIRE(first.store(drops, "0\n") == "ok");
  std::string log = first.text("clock/log");
  CHECK(log == "@5000000 mb_0/mad_sa_cc/1/drops=0\n");

  second.rig.ports[0]->limiter().counters().drops.set(4);
  CHECK(second.store("clock/at", log) == "ok");
  CHECK(second.text("clock/at") == log);
  CHECK(second.store("clock/at", "1ms mb_0/mad_sa_cc/1/drops=0 sa/loss=0") ==
        "mb_0/mad_sa_cc/1/drops: only knobs may be stored together");
  CHECK(second.store("clock/at", "1ms mb_0/mad_sa_cc/1/sent=0") ==
        "mb_0/mad_sa_cc/1/sent: no knob has this path");
  second.rig.engine->start();
  CHECK(second.store("clock/advance", "4999999") == "ok");
  CHECK(second.rig.show(drops) == "4\n");
  CHECK(second.store("clock/advance", "1ms") == "ok");
  CHECK(second.rig.show(drops) == "0\n");
  CHECK(second.text("clock/log") == log);
  CHECK(second.failed.empty());
  CHECK(second.store("clock/at", "1ms " + drops + "=1") == "ok");  // looked at in its time
  CHECK(second.store("clock/advance", "1ms") == "ok");
  CHECK(second.failed.size() == 1);
}

TEST_CASE("sa: delay, loss and busy are passed to the administrators") {
  SaRig rig;
  CHECK(rig.store("sa/delay", "100ms") == "ok");
  CHECK(rig.store("sa/loss", "0.5") == "ok");
  CHECK(rig.store("sa/busy", "0.25") == "ok");
  CHECK(rig.sa.delay_ns == 100 * kMillisecond);
  CHECK(rig.sa.loss == 0.5);
  CHECK(rig.sa.busy == 0.25);
  CHECK(rig.store("sa/delay", "10s") == "ok");
  CHECK(rig.store("sa/delay", "10.000000001s") == "EINVAL");
  CHECK(rig.store("sa/loss", "1.5") == "EINVAL");
  CHECK(rig.store("debug/reset", "1") == "ok");
  CHECK(rig.sa.delay_ns == 0);
  CHECK(rig.sa.loss == 0);
  CHECK(rig.sa.busy == 0);
}
