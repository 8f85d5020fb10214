// Functions of rocefs_pcc.h: events, rates, ranges.
#include "pcc/api/rocefs_pcc.h"

#include <catch2/catch.hpp>

#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kInterval = PccWorld::kInterval;
using Act = std::function<mango_pcc_result_t(PccScript&, const mango_pcc_context_t&)>;

// Sizes of the events that each call takes.
struct Taker {
  std::vector<std::vector<uint32_t>> calls;
  size_t most = ~size_t{0};  // taken in a call
  Act act = [this](PccScript&, const mango_pcc_context_t& context) {
    std::vector<uint32_t> taken;
    rocefs_pcc_event_t event;
    while (taken.size() < most && rocefs_pcc_event_next(&event)) taken.push_back(event.bytes);
    calls.push_back(taken);
    return keep_window(context);
  };
  PccAlgorithm algorithm(uint32_t metrics, const char* name = "taker") {
    return scripted(name, metrics, act);
  }
};
using Calls = std::vector<std::vector<uint32_t>>;

}  // namespace

TEST_CASE("pcc events: a call takes those of its queue pair since the call before") {
  PccWorld world;
  Taker taker;
  REQUIRE(world.controller.add(0, taker.algorithm(ROCEFS_PCC_METRIC_EVENTS)) == MANGO_STATUS_OK);
  world.pages.activate(17);
  world.pages.activate(18);
  world.pages.add_event(17, 1);  // before the run
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  CHECK(world.pages.control_of(17).wants == ROCEFS_WANTS_EVENTS);
  for (uint32_t bytes : {10, 11}) world.pages.add_event(17, bytes);
  world.pages.add_event(18, 20);
  world.pages.add_event(4711, 30);  // inactive
  world.run(kInterval);
  CHECK(taker.calls == Calls{{10, 11}, {20}});
  world.run(2 * kInterval);
  CHECK(taker.calls == Calls{{10, 11}, {20}});
}

TEST_CASE("pcc events: what a call leaves is there in the next one") {
  PccWorld world;
  Taker taker;
  taker.most = 2;
  world.controller.add(0, taker.algorithm(ROCEFS_PCC_METRIC_EVENTS));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  for (uint32_t bytes : {1, 2, 3}) world.pages.add_event(17, bytes);
  world.run(2 * kInterval);
  CHECK(taker.calls == Calls{{1, 2}, {3}});
}

TEST_CASE("pcc events: none without the metric, and none of an earlier queue pair") {
  PccWorld world;
  Taker taker;
  bool wanted = GENERATE(false, true);
  world.controller.add(0, taker.algorithm(wanted ? ROCEFS_PCC_METRIC_EVENTS : 0));
  world.pages.activate(17);
  rocefs_qp_event old{};
  old.qpn = 17;
  old.generation = world.pages.signals_of(17).generation;
  old.bytes = 9;
  world.pages.deactivate(17);
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.pages.add_event(old);
  world.pages.add_event(17, 10);
  world.run(kInterval);
  CHECK(taker.calls == (wanted ? Calls{{10}} : Calls{{}}));
  CHECK((world.pages.control_of(17).wants != 0) == wanted);
}

TEST_CASE("pcc events: telemetry alone is refused, as are unknown metrics") {
  PccWorld world;
  Taker taker;
  auto add = [&](uint32_t metrics) { return world.controller.add(0, taker.algorithm(metrics)); };
  CHECK(add(ROCEFS_PCC_METRIC_INT) == MANGO_STATUS_INVALID_PARAM);
  CHECK(add(1u << 18) == MANGO_STATUS_INVALID_PARAM);
  CHECK(add(ROCEFS_PCC_METRIC_INT | ROCEFS_PCC_METRIC_EVENTS) == MANGO_STATUS_OK);
}

TEST_CASE("pcc events: pollers share the ring") {
  PccWorld world;
  Taker taker;
  world.controller.add(0, taker.algorithm(ROCEFS_PCC_METRIC_EVENTS));
  for (uint32_t qpn : {17u, 18u, 19u}) world.pages.activate(qpn);
  REQUIRE(world.begin(3) == MANGO_STATUS_OK);
  for (uint32_t qpn : {19u, 18u, 17u}) world.pages.add_event(qpn, qpn);
  for (TimeNs at : {TimeNs{0}, kInterval}) {
    for (unsigned poller : {0u, 1u, 2u}) world.controller.poll(poller, at);
  }
  CHECK(taker.calls == Calls{{17}, {18}, {19}});
}

TEST_CASE("pcc events: those that were overwritten are counted, the newest are there") {
  PccWorld world;
  std::vector<uint32_t> taken;
  uint64_t lost = 0;
  Act act = [&](PccScript&, const mango_pcc_context_t& context) {
    rocefs_pcc_event_t event;
    while (rocefs_pcc_event_next(&event)) taken.push_back(event.bytes);
    lost = rocefs_pcc_events_lost();
    return keep_window(context);
  };
  world.controller.add(0, scripted("taker", ROCEFS_PCC_METRIC_EVENTS, act));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  constexpr uint32_t kMore = 100;
  for (uint32_t n = 0; n < ROCEFS_EVENT_ENTRIES + kMore; ++n) world.pages.add_event(17, n);
  world.run(kInterval);
  // A queue pair keeps 1024 that its algorithm has not taken.
  constexpr uint32_t kKept = 1024;
  CHECK(lost == ROCEFS_EVENT_ENTRIES + kMore - kKept);
  CHECK(world.pages.control->events_lost == lost);
  REQUIRE(taken.size() == kKept);
  CHECK(taken.front() == ROCEFS_EVENT_ENTRIES + kMore - kKept);
  CHECK(taken.back() == ROCEFS_EVENT_ENTRIES + kMore - 1);
}

TEST_CASE("pcc events: units of the engine's page become octets and times") {
  PccWorld world;
  rocefs_pcc_event_t seen{};
  Act act = [&](PccScript&, const mango_pcc_context_t& context) {
    rocefs_pcc_event_next(&seen);
    return keep_window(context);
  };
  world.controller.add(0, scripted("taker", ROCEFS_PCC_METRIC_EVENTS, act));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  rocefs_qp_event event{};
  event.qpn = 17;
  event.generation = world.pages.signals_of(17).generation;
  event.at_ns = 0x1'2300'0010;
  event.kind = ROCEFS_QP_ACK;
  event.hops = 9;  // more than there are
  event.hop[0] = {.queue = 3, .sent = 0xffffff, .time_ns = 0xfffff0, .rate_mbps = 25'000};
  world.pages.add_event(event);
  world.run(kInterval);
  CHECK(seen.type == ROCEFS_PCC_EVENT_ACK);
  CHECK(seen.hops == ROCEFS_PCC_MAX_HOPS);
  CHECK(seen.missed_hops == 4);
  CHECK(seen.hop[0].queue_bytes == 48);
  CHECK(seen.hop[0].sent_bytes == ROCEFS_PCC_SENT_MODULUS - 64);
  CHECK(seen.hop[0].rate_bps == 25'000'000'000);
  CHECK(seen.hop[0].at_ns == 0x1'22ff'fff0);  // 32 ns before the event
}

TEST_CASE("pcc events: a way that telemetry has a part of is told, and warned of once") {
  PccWorld world;
  std::vector<std::pair<uint32_t, uint32_t>> seen;
  Act act = [&](PccScript&, const mango_pcc_context_t& context) {
    rocefs_pcc_event_t event;
    while (rocefs_pcc_event_next(&event)) seen.emplace_back(event.hops, event.missed_hops);
    return keep_window(context);
  };
  const uint32_t metrics = ROCEFS_PCC_METRIC_EVENTS | ROCEFS_PCC_METRIC_INT;
  world.controller.add(0, scripted("taker", metrics, act));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  auto warnings = [&] {
    return std::count_if(world.logged.begin(), world.logged.end(), [](const std::string& line) {
      return line.ends_with("algorithm taker: telemetry has the first 5 of 7 switches on a way");
    });
  };
  rocefs_qp_event event{};
  event.qpn = 17;
  event.generation = world.pages.signals_of(17).generation;
  event.kind = ROCEFS_QP_ACK;
  for (uint8_t hops : {0, 5, 7, 7}) {
    CHECK(warnings() == 0);
    event.hops = hops;
    world.pages.add_event(event);
  }
  world.run(kInterval);
  CHECK(seen == std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}, {5, 0}, {5, 2}, {5, 2}});
  CHECK(warnings() == 1);
}

TEST_CASE("pcc rate: in the page, in steps of 100 kb/s, until another slot is applied") {
  PccWorld world;
  uint64_t wanted = 1, current = 0, line = 0, at = 0;
  Act act = [&](PccScript&, const mango_pcc_context_t& context) {
    rocefs_pcc_rate_update(wanted);
    current = rocefs_pcc_rate_current();
    line = rocefs_pcc_line_rate();
    at = rocefs_pcc_now();
    return keep_window(context);
  };
  Act idle = [](PccScript&, const mango_pcc_context_t& context) { return keep_window(context); };
  world.controller.add(0, scripted("paced", 0, act));
  world.controller.add(1, scripted("idle", 0, idle));
  world.pages.activate(17);
  world.pages.signals_of(17).line_bps = 40'000'000'000;
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  uint64_t bound = uint64_t{world.pages.signals_of(17).generation} << 32;
  auto rate_after = [&](uint64_t bits_per_second) {
    wanted = bits_per_second;
    world.run(world.now + kInterval);
    return world.pages.control_of(17).rate;
  };
  CHECK(rate_after(1) == (bound | 1));
  CHECK(current == 100'000);
  CHECK(rate_after(10'000'000'000) == (bound | 100'000));
  CHECK(rate_after(~uint64_t{0}) == (bound | 0xffffffff));
  CHECK(rate_after(0) == bound);
  CHECK(rate_after(7'000'000) == (bound | 70));
  CHECK(line == 40'000'000'000);
  CHECK(at == static_cast<uint64_t>(world.now));
  REQUIRE(world.controller.apply(1) == MANGO_STATUS_OK);
  CHECK(world.pages.control_of(17).rate == bound);
}

TEST_CASE("pcc range: values outside are refused; a range must hold the present value") {
  PccWorld world;
  Taker taker;
  PccController& controller = world.controller;
  world.controller.add(0, taker.algorithm(0));
  CHECK(controller.limit_parameter(0, "number", 1, 5) == MANGO_STATUS_INVALID_PARAM);
  CHECK(controller.limit_parameter(0, "none", 0, 5) == MANGO_STATUS_NOT_FOUND);
  CHECK(controller.limit_parameter(1, "number", 0, 5) == MANGO_STATUS_NOT_FOUND);
  REQUIRE(controller.limit_parameter(0, "number", 0, 5) == MANGO_STATUS_OK);
  std::vector<PccController::Change> good{{"number", "5"}}, bad{{"number", "6"}};
  CHECK(controller.update(0, good));
  Result<void> refused = controller.update(0, bad);
  REQUIRE(!refused);
  CHECK(refused.error().code == EINVAL);
  CHECK(*controller.value(0, "number") == "5");
}

TEST_CASE("pcc: functions for algorithms do nothing outside of one") {
  rocefs_pcc_event_t event;
  CHECK(rocefs_pcc_event_next(&event) == 0);
  CHECK(rocefs_pcc_event_next(nullptr) == 0);
  rocefs_pcc_rate_update(1);
  CHECK(rocefs_pcc_rate_current() == 0);
  CHECK(rocefs_pcc_line_rate() == 0);
  CHECK(rocefs_pcc_now() == 0);
  CHECK(rocefs_pcc_param_range(nullptr, 0, "x", 0, 1) == MANGO_STATUS_INVALID_PARAM);
}

TEST_CASE("pcc: calls that come late are counted") {
  PccWorld world;
  Act act = [](PccScript&, const mango_pcc_context_t& context) { return keep_window(context); };
  world.controller.add(0, scripted("timed", 0, act));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  auto late = [&](TimeNs at) {
    world.poll(at);
    return world.pages.control_of(17).late_calls;
  };
  world.poll(0);
  CHECK(late(kInterval) == 0);
  CHECK(late(3 * kInterval - 1) == 0);
  CHECK(late(5 * kInterval) == 1);
  CHECK(late(6 * kInterval) == 1);
}

TEST_CASE("pcc: an algorithm of events is late by the age of the oldest") {
  PccWorld world;
  Taker taker;
  world.controller.add(0, taker.algorithm(ROCEFS_PCC_METRIC_EVENTS));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(kInterval);
  auto late_at = [&](TimeNs event, TimeNs call) {
    rocefs_qp_event told{};
    told.qpn = 17;
    told.generation = world.pages.signals_of(17).generation;
    told.at_ns = static_cast<uint64_t>(event);
    world.pages.add_event(told);
    world.poll(call);
    return world.pages.control_of(17).late_calls;
  };
  CHECK(late_at(20 * kInterval, 20 * kInterval) == 0);
  CHECK(late_at(30 * kInterval, 32 * kInterval - 1) == 0);
  CHECK(late_at(40 * kInterval, 42 * kInterval) == 1);
  CHECK(taker.calls.size() == 4);
}

TEST_CASE("pcc events: under the virtual clock the next look is the engine's to say") {
  for (bool virtual_clock : {false, true}) {
    PccWorld world;
    Taker taker;
    world.pages.signals->virtual_clock = virtual_clock;
    world.controller.add(0, taker.algorithm(ROCEFS_PCC_METRIC_EVENTS));
    world.pages.activate(17);
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    world.poll(0);
    CHECK(world.poll(kInterval) == (virtual_clock ? kNever : 2 * kInterval));
    CHECK(taker.calls == Calls{{}});
    world.pages.add_event(17, 1);
    // A pause of more than an interval: at once.
    world.poll(10 * kInterval);
    CHECK(taker.calls == Calls{{}, {1}});
    // An interval passes between two calls.
    world.pages.add_event(17, 2);
    CHECK(world.poll(10 * kInterval + 1) == 11 * kInterval);
    CHECK(taker.calls.size() == 2);
    world.poll(11 * kInterval);
    CHECK(taker.calls == Calls{{}, {1}, {2}});
  }
}

TEST_CASE("pcc events: a poller without listeners loses none") {
  PccWorld world;
  Taker taker;
  uint64_t lost = 0;
  Act act = [&](PccScript&, const mango_pcc_context_t& context) {
    rocefs_pcc_event_t event;
    while (rocefs_pcc_event_next(&event)) lost = rocefs_pcc_events_lost();
    return keep_window(context);
  };
  world.controller.add(0, scripted("taker", ROCEFS_PCC_METRIC_EVENTS, act));
  world.pages.activate(18);  // of poller 1
  REQUIRE(world.begin(2) == MANGO_STATUS_OK);
  for (TimeNs round = 0; round < 40; ++round) {
    for (uint32_t n = 0; n < 500; ++n) world.pages.add_event(18, n);
    world.controller.poll(1, round * kInterval);
  }
  world.controller.poll(0, 40 * kInterval);
  CHECK(world.pages.control->events_lost == 0);
  CHECK(lost == 0);
}

TEST_CASE(
    "pcc events: another algorithm is called on a queue pair that slept, without old events") {
  for (bool events : {false, true}) {
    PccWorld world;
    Taker first, second;
    world.pages.signals->virtual_clock = 1;
    world.controller.add(0, first.algorithm(ROCEFS_PCC_METRIC_EVENTS));
    world.controller.add(1, second.algorithm(events ? ROCEFS_PCC_METRIC_EVENTS : 0, "other"));
    world.pages.activate(17);
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    world.poll(0);
    CHECK(world.poll(kInterval) == kNever);
    world.pages.add_event(17, 1);
    world.poll(kInterval + 1);  // taken from the page, and not yet by the algorithm
    REQUIRE(world.controller.apply(1) == MANGO_STATUS_OK);
    world.poll(50 * kInterval);
    CHECK(first.calls == Calls{{}});
    CHECK(second.calls == Calls{{}});
    CHECK(world.pages.control_of(17).late_calls == 0);
  }
}
