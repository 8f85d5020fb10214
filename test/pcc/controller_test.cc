// Controller: choice and time of an algorithm's calls for each queue pair.
#include "pcc/run/controller.h"

#include <catch2/catch.hpp>
#include <set>

#include "pcc/run/call.h"
#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kInterval = PccWorld::kInterval;

struct Called {
  uint32_t qpn;
  TimeNs at;
  bool operator==(const Called&) const = default;
};

// Recorder: logs the calls in order.
struct Recorder {
  PccWorld& world;
  std::vector<Called> calls;
  std::function<void(PccScript&)> function = [this](PccScript&) {
    calls.push_back({PccCall::current()->qpn(), at});
  };
  TimeNs at = 0;
  TimeNs poll(TimeNs now, unsigned poller = 0) {
    at = now;
    return world.controller.poll(poller, now);
  }
};

}  // namespace

TEST_CASE(
    "controller: a queue pair is first called an interval after it is seen, then every interval") {
  PccWorld world;
  Recorder recorder{world, {}};
  world.controller.add(0, scripted("a", recorder.function));
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  CHECK(recorder.poll(1000) == kNever);
  world.pages.activate(17);
  CHECK(recorder.poll(5000) == 5000 + kInterval);
  CHECK(recorder.poll(5000 + kInterval - 1) == 5000 + kInterval);
  CHECK(recorder.calls.empty());
  CHECK(recorder.poll(5000 + kInterval) == 5000 + 2 * kInterval);
  // Less than an interval late: no drift. An interval late or more: no burst.
  CHECK(recorder.poll(5007 + 2 * kInterval) == 5000 + 3 * kInterval);
  TimeNs late = 5000 + 4 * kInterval;
  CHECK(recorder.poll(late) == late + kInterval);
  CHECK(recorder.calls ==
        std::vector<Called>{{17, 5000 + kInterval}, {17, 5007 + 2 * kInterval}, {17, late}});
  CHECK(world.controller.statistics().calls == 3);
}

TEST_CASE("controller: queue pairs that are due at once are called in order of their numbers") {
  PccWorld world;
  Recorder recorder{world, {}};
  world.controller.add(0, scripted("a", recorder.function));
  for (uint32_t qpn : {400u, 17u, 16400u, 99u}) world.pages.activate(qpn);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  recorder.poll(0);
  world.pages.activate(50);  // called later
  recorder.poll(10);
  recorder.poll(kInterval);
  recorder.poll(kInterval + 10);
  std::vector<uint32_t> order;
  for (const Called& call : recorder.calls) order.push_back(call.qpn);
  CHECK(order == std::vector<uint32_t>{17, 99, 400, 16400, 50});
}

TEST_CASE("controller: each queue pair keeps its poller") {
  PccWorld world;
  Recorder recorder{world, {}};
  world.controller.add(0, scripted("a", recorder.function));
  for (uint32_t qpn = 17; qpn < 117; ++qpn) world.pages.activate(qpn);
  REQUIRE(world.begin(3) == MANGO_STATUS_OK);
  for (unsigned poller = 0; poller < 3; ++poller) recorder.poll(0, poller);
  for (unsigned round = 1; round < 4; ++round) {
    for (unsigned poller = 0; poller < 3; ++poller) {
      recorder.calls.clear();
      recorder.poll(round * kInterval, poller);
      for (const Called& call : recorder.calls) CHECK((call.qpn - 17) % 3 == poller);
      CHECK(recorder.calls.size() == (poller == 0 ? 34 : 33));
    }
  }
}

TEST_CASE("controller: a new interval takes effect at once, and engine time may go back") {
  PccWorld world;
  Recorder recorder{world, {}};
  world.controller.add(0, scripted("a", recorder.function));
  world.pages.activate(17);
  world.controller.set_interval(kSecond);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  CHECK(recorder.poll(0) == kSecond);
  world.controller.set_interval(10 * kMicrosecond);
  CHECK(world.controller.interval() == 10 * kMicrosecond);
  CHECK(recorder.poll(5 * kMicrosecond) == 10 * kMicrosecond);
  CHECK(recorder.poll(30 * kMillisecond) == 30 * kMillisecond + 10 * kMicrosecond);
  CHECK(recorder.poll(kMillisecond) == kMillisecond + 10 * kMicrosecond);
  CHECK(world.controller.set_interval(0) == MANGO_STATUS_INVALID_PARAM);
  CHECK(recorder.calls.size() == 1);
}

TEST_CASE("controller: a queue pair number that is reused starts afresh") {
  PccWorld world;
  std::vector<uint64_t> kept;
  std::function<void(PccScript&)> count = [&](PccScript& script) { kept.push_back(++script.kept); };
  world.controller.add(0, scripted("a", count));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(2 * kInterval);
  CHECK(kept == std::vector<uint64_t>{1, 2});
  world.pages.deactivate(17);
  world.pages.activate(17);
  CHECK(world.pages.window(17) == ROCEFS_NO_WINDOW);
  world.run(4 * kInterval);
  CHECK(kept == std::vector<uint64_t>{1, 2, 1, 2});
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW);
  world.pages.deactivate(17);
  world.run(9 * kInterval);
  CHECK(kept.size() == 4);
  CHECK(world.poll(world.now) == kNever);
}

TEST_CASE(
    "controller: begin gives windows to those without one, keeps others, and resets the counters") {
  PccWorld world;
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  world.controller.add(0, scripted("a", nothing));
  for (uint32_t qpn : {17u, 18u, 19u}) world.pages.activate(qpn);
  world.pages.control_of(18).window = uint64_t{1} << 32 | 4096;
  world.pages.control_of(19).window = uint64_t{77} << 32 | 4096;
  for (uint32_t qpn : {17u, 18u, 19u}) {
    world.pages.cnps(qpn, 5);
    world.pages.control_of(qpn).calls = 9;
  }
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  CHECK(world.begin() == MANGO_STATUS_BAD_STATE);
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW);
  CHECK(world.pages.window(18) == 4096);
  CHECK(world.pages.window(19) == ROCEFS_FIRST_WINDOW);
  CHECK(world.calls(18) == 0);
  CHECK(world.cnp_count(18) == 0);
  world.pages.cnps(18, 3);
  CHECK(world.cnp_count(18) == 3);
  uint32_t window = 0;
  CHECK(world.controller.window(18, &window) == MANGO_STATUS_OK);
  CHECK(window == 4096);
  std::vector<uint32_t> active(ROCEFS_MAX_QPS);
  CHECK(world.controller.active(active.data(), active.size()) == 3);
  CHECK(active[2] == 19);
  uint64_t count = 0;
  for (uint32_t stranger : {0u, 16u, 20u, 17u + ROCEFS_MAX_QPS, 0xffffffffu}) {
    CHECK(world.controller.cnp_count(stranger, &count) == MANGO_STATUS_NOT_FOUND);
  }
  world.controller.end();
  CHECK(world.controller.active(active.data(), active.size()) == 0);
  CHECK(world.controller.window(18, &window) == MANGO_STATUS_NOT_FOUND);
  world.pages.cnps(18, 1);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  CHECK(world.cnp_count(18) == 0);
}

TEST_CASE(
    "controller: small windows are raised to the least, settings are counted and changes traced") {
  PccWorld world;
  uint32_t next = 0;
  std::function<void(PccScript&)> set = [&](PccScript&) {
    mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP);
    mango_pcc_window_update(next);
  };
  world.controller.add(4, scripted("a", set));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.poll(0);
  struct Step {
    uint32_t set, stored;
    uint64_t traced;
  };
  TimeNs now = 0;
  uint32_t calls = 0;
  for (const Step& step : std::initializer_list<Step>{{0, 1024, 1},
                                                      {1023, 1024, 1},
                                                      {1024, 1024, 1},
                                                      {1025, 1025, 2},
                                                      {0xffffffff, 0xfffffffe, 3}}) {
    next = step.set;
    world.pages.cnps(17, 2);
    world.poll(now += kInterval);
    CHECK(world.pages.window(17) == step.stored);
    CHECK(world.pages.control->traced == step.traced);
    CHECK(world.calls(17) == ++calls);
  }
  const rocefs_trace_entry& entry = world.pages.control->trace[1];
  CHECK(entry.at_ns == static_cast<uint64_t>(4 * kInterval));
  CHECK(entry.qpn == 17);
  CHECK(entry.slot == 4);
  CHECK(entry.old_window == 1024);
  CHECK(entry.new_window == 1025);
  CHECK(entry.cnps == 2);
  CHECK(entry.rtt_ns == 0);
}

TEST_CASE("controller: the trace is a ring buffer") {
  PccWorld world;
  uint32_t window = 2000;
  std::function<void(PccScript&)> set = [&](PccScript&) {
    for (int i = 0; i < 70'000; ++i) mango_pcc_window_update(++window);
  };
  world.controller.add(0, scripted("a", set));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(kInterval);
  CHECK(world.pages.control->traced == 70'000);
  CHECK(world.pages.control->trace[70'000 % ROCEFS_TRACE_ENTRIES - 1].new_window == 72'000);
  CHECK(world.pages.control->trace[70'000 % ROCEFS_TRACE_ENTRIES].new_window ==
        72'001 - ROCEFS_TRACE_ENTRIES);
}

TEST_CASE(
    "controller: a new slot starts afresh at the current window, and the same slot continues") {
  PccWorld world;
  std::vector<std::string> seen;
  std::function<void(PccScript&)> a = [&](PccScript& script) {
    seen.push_back("a" + std::to_string(++script.kept));
    mango_pcc_window_update(5000);
  };
  std::function<void(PccScript&)> b = [&](PccScript& script) {
    seen.push_back("b" + std::to_string(++script.kept));
  };
  world.controller.add(3, scripted("a", a));
  world.controller.add(5, scripted("b", b));
  for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
  CHECK(world.controller.apply(4) == MANGO_STATUS_NOT_FOUND);
  CHECK(world.controller.apply(16) == MANGO_STATUS_INVALID_PARAM);
  CHECK(!world.controller.applied());
  REQUIRE(world.begin() == MANGO_STATUS_OK);  // lowest slot, since none is applied
  CHECK(world.controller.applied() == 3);
  CHECK(world.controller.remove(3) == MANGO_STATUS_BUSY);
  world.run(2 * kInterval);
  CHECK(seen == std::vector<std::string>{"a1", "a1", "a2", "a2"});
  CHECK(world.controller.apply(3) == MANGO_STATUS_OK);
  CHECK(world.calls(17) == 2);
  seen.clear();
  uint32_t one[] = {18};
  CHECK(world.controller.apply(5, one) == MANGO_STATUS_OK);
  CHECK(world.calls(17) == 2);
  CHECK(world.calls(18) == 0);
  CHECK(world.pages.control_of(18).slot == 5);
  CHECK(world.controller.remove(5) == MANGO_STATUS_BUSY);
  world.run(3 * kInterval);
  CHECK(seen == std::vector<std::string>{"a3", "b1"});
  CHECK(world.pages.window(18) == 5000);
  // New queue pairs get the common slot; a list with an unknown queue pair applies nothing.
  world.pages.activate(19);
  uint32_t unknown[] = {17, 20};
  CHECK(world.controller.apply(5, unknown) == MANGO_STATUS_NOT_FOUND);
  uint32_t fresh[] = {19};
  CHECK(world.controller.apply(3, fresh) == MANGO_STATUS_OK);
  seen.clear();
  world.run(4 * kInterval);
  CHECK(seen == std::vector<std::string>{"a4", "b2", "a1"});
  CHECK(world.controller.apply(3) == MANGO_STATUS_OK);
  CHECK(world.controller.remove(5) == MANGO_STATUS_OK);
  CHECK(world.controller.remove(5) == MANGO_STATUS_NOT_FOUND);
  seen.clear();
  world.run(5 * kInterval);
  CHECK(seen == std::vector<std::string>{"a5", "a1", "a2"});
  world.controller.end();
  CHECK(world.controller.apply(3, one) == MANGO_STATUS_BAD_STATE);
  CHECK(world.controller.remove(3) == MANGO_STATUS_OK);
  CHECK(!world.controller.applied());
  CHECK(world.begin() == MANGO_STATUS_BAD_STATE);
}

TEST_CASE("controller: an algorithm that writes past its parameters is detected, and calls end") {
  for (size_t past : {0u, 7u, 31u}) {
    PccWorld world;
    unsigned calls = 0;
    std::function<void(PccScript&)> overrun = [&](PccScript& script) {
      if (++calls == 3) reinterpret_cast<uint8_t*>(&script + 1)[past] ^= 1;
    };
    world.controller.add(0, scripted("wild", overrun));
    for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    world.poll(0);
    world.poll(kInterval);
    CHECK(!world.controller.damage());
    CHECK(world.poll(2 * kInterval) == kNever);
    CHECK(world.controller.damage() == "algorithm wild wrote past its parameters on QP 17");
    CHECK(world.poll(3 * kInterval) == kNever);
    CHECK(world.logged ==
          std::vector<std::string>{"algorithm wild wrote past its parameters on QP 17"});
    CHECK(calls == 3);
    world.controller.end();
    CHECK(world.controller.damage());
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    CHECK(!world.controller.damage());
  }
}

TEST_CASE("controller: the current call can be read from outside") {
  PccWorld world;
  std::vector<PccController::Call> seen;
  std::function<void(PccScript&)> look = [&](PccScript&) {
    seen.push_back(world.controller.current_call(0));
  };
  world.controller.add(2, scripted("a", look));
  for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
  CHECK(world.controller.current_call(0).number == 0);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(kInterval);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].number != seen[1].number);
  CHECK(seen[0].number != 0);
  CHECK(seen[1].qpn == 18);
  CHECK(seen[1].algorithm == "a");
  CHECK(world.controller.current_call(0).number == 0);
  CHECK(world.controller.current_call(1).number == 0);
  CHECK(PccCall::current() == nullptr);
}

TEST_CASE(
    "controller: calls that would wait for the algorithm are refused within it, queries are not") {
  PccWorld world;
  std::set<mango_status_e> refused;
  uint32_t window = 0;
  std::function<void(PccScript&)> meddle = [&](PccScript&) {
    PccController& controller = world.controller;
    uint32_t list[] = {17};
    auto callback = [](const char*, mango_pcc_param_type_e, void*, void*) {};
    refused = {controller.apply(0),
               controller.apply(0, list),
               controller.remove(0),
               controller.add(1, {}),
               controller.add_parameter(0, {}),
               controller.walk(0, callback, nullptr, 0),
               controller.set_interval(1),
               world.begin()};
    CHECK(!controller.update(0, {}));
    CHECK(!controller.value(0, "number"));
    CHECK(controller.window(17, &window) == MANGO_STATUS_OK);
  };
  world.controller.add(0, scripted("a", meddle));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(kInterval);
  CHECK(refused == std::set{MANGO_STATUS_BAD_STATE});
  CHECK(window == ROCEFS_FIRST_WINDOW);
}

TEST_CASE("controller: a slot holds one algorithm, and names are unique") {
  PccWorld world;
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  CHECK(world.controller.add(16, scripted("a", nothing)) == MANGO_STATUS_INVALID_PARAM);
  CHECK(world.controller.add(0, {}) == MANGO_STATUS_INVALID_PARAM);
  CHECK(world.controller.add(0, scripted("a", nothing)) == MANGO_STATUS_OK);
  CHECK(world.controller.add(0, scripted("b", nothing)) == MANGO_STATUS_ALREADY_OPENED);
  CHECK(world.controller.add(1, scripted("a", nothing)) == MANGO_STATUS_ALREADY_OPENED);
  CHECK(world.controller.add(2, scripted("", nothing)) == MANGO_STATUS_OK);
  CHECK(world.controller.add(1, scripted("", nothing)) == MANGO_STATUS_OK);
  CHECK(world.controller.free_slot() == 3);
  CHECK(world.controller.find("a") == 0);
  CHECK(!world.controller.find("b"));
  CHECK(world.controller.remove(99) == MANGO_STATUS_INVALID_PARAM);
  PccAlgorithm large = scripted("large", nothing);
  large.initial.resize(MANGO_PCC_MAX_PARAM_SIZE + 1);
  CHECK(world.controller.add(4, large) == MANGO_STATUS_LIMIT);
  CHECK(!world.controller.algorithm(4));
}
