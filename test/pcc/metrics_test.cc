// Input of algorithms: CNPs and round trips, and the result.
#include <catch2/catch.hpp>

#include "pcc/run/call.h"
#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kInterval = PccWorld::kInterval;
constexpr uint32_t kBoth = MANGO_PCC_METRIC_CNP | MANGO_PCC_METRIC_RTT;
using Event = std::function<mango_pcc_result_t(PccScript&, const mango_pcc_context_t&)>;

bool logged(const PccWorld& world, std::string_view words) {
  for (const std::string& line : world.logged) {
    if (line.find(words) != line.npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("metrics: only declared metrics are read") {
  for (uint32_t metrics : {0u, 1u, 2u, 3u}) {
    INFO("metrics " << metrics);
    PccWorld world;
    std::vector<mango_pcc_context_t> seen;
    Event event = [&](PccScript&, const mango_pcc_context_t& context) {
      seen.push_back(context);
      mango_pcc_result_t result = keep_window(context);
      result.request_rtt_probe = 1;
      return result;
    };
    world.controller.add(0, scripted("a", metrics, event));
    for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    world.run(kInterval);
    world.pages.cnps(17, 6);
    world.pages.answer(17, 12'345);
    world.run(2 * kInterval);
    bool cnp = metrics & MANGO_PCC_METRIC_CNP, rtt = metrics & MANGO_PCC_METRIC_RTT;
    CHECK(seen[2].current_window == ROCEFS_FIRST_WINDOW);
    CHECK(seen[2].cnp_delta == (cnp ? 6 : 0));
    CHECK(seen[2].latest_rtt_ns == (rtt ? 12'345 : 0));
    CHECK(seen[2].rtt_updated == (rtt ? 1 : 0));
    CHECK(seen[2].active_qp_count == 2);
    PccStatistics statistics = world.controller.statistics();
    CHECK(statistics.calls == 4);
    CHECK(statistics.cnp_reads == (cnp ? 4 : 0));
    CHECK((statistics.rtt_reads > 0) == rtt);
    CHECK(world.pages.control_of(17).probe == (rtt ? 2 : 0));
    CHECK(logged(world, "did not declare") == !rtt);
    for (const mango_pcc_context_t& context : seen) {
      for (uint8_t octet : context._pad) CHECK(octet == 0);
      for (uint8_t octet : context._reserved) CHECK(octet == 0);
    }
  }
}

TEST_CASE("metrics: CNPs are counted since the previous call, for the queue pair alone") {
  PccWorld world;
  std::vector<uint32_t> seen;
  Event event = [&](PccScript&, const mango_pcc_context_t& context) {
    seen.push_back(context.cnp_delta);
    return keep_window(context);
  };
  world.controller.add(0, scripted("a", kBoth, event));
  world.pages.activate(17);
  world.pages.cnps(17, 100);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(0);
  world.pages.cnps(17, 2);
  world.run(kInterval);
  world.pages.cnps(18, 50);
  world.run(2 * kInterval);
  world.pages.cnps(17, uint64_t{1} << 40);
  world.run(3 * kInterval);
  CHECK(seen == std::vector<uint32_t>{2, 0, 0xffffffff});
}

TEST_CASE(
    "metrics: a legacy algorithm reads and clears a metric, and unrequested ones are not read") {
  PccWorld world;
  std::vector<unsigned> seen;
  int turn = 0;
  std::function<void(PccScript&)> legacy = [&](PccScript&) {
    if (turn++ == 1) return;
    seen.push_back(mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP));
    seen.push_back(mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP));
    CHECK(mango_pcc_event_get_val(static_cast<mango_pcc_event_e>(2)) == 0);
  };
  world.controller.add(0, scripted("a", legacy));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(0);
  for (int i = 1; i <= 3; ++i) {
    world.pages.cnps(17, 4);
    world.run(i * kInterval);
  }
  CHECK(seen == std::vector<unsigned>{4, 0, 8, 0});
  CHECK(world.controller.statistics().cnp_reads == 4);
  CHECK(world.controller.statistics().rtt_reads == 0);
}

TEST_CASE("metrics: a legacy algorithm requests a round trip and reads it once, in nanoseconds") {
  PccWorld world;
  std::vector<unsigned> seen;
  int turn = 0;
  std::function<void(PccScript&)> legacy = [&](PccScript&) {
    seen.push_back(mango_pcc_event_get_val(MANGO_PCC_EVENT_RTT));
    seen.push_back(mango_pcc_event_get_val(MANGO_PCC_EVENT_RTT));
    if (turn++ % 2 == 0) CHECK(mango_pcc_event_request(MANGO_PCC_EVENT_RTT) == MANGO_STATUS_OK);
    CHECK(mango_pcc_event_request(MANGO_PCC_EVENT_CNP) == MANGO_STATUS_NOT_SUPPORTED);
    CHECK(mango_pcc_event_request(static_cast<mango_pcc_event_e>(2)) == MANGO_STATUS_INVALID_PARAM);
  };
  world.controller.add(0, scripted("a", legacy));
  world.pages.activate(17);
  // Answered probe of an earlier owner: no answer to the first probe of this run.
  world.pages.signals_of(17).rtt_probe = 1;
  world.pages.signals_of(17).rtt_ns = 99;
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(kInterval);
  world.run(2 * kInterval);
  world.pages.answer(17, 7'000);
  world.run(3 * kInterval);
  world.pages.answer(17, uint64_t{1} << 33);
  world.run(4 * kInterval);
  CHECK(seen == std::vector<unsigned>{0, 0, 0, 0, 7'000, 0, 0xffffffff, 0});
  CHECK(world.pages.control_of(17).rtt_timeouts == 0);
}

TEST_CASE("metrics: an algorithm that is applied later does not see earlier CNPs") {
  PccWorld world;
  std::vector<uint32_t> seen;
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  Event event = [&](PccScript&, const mango_pcc_context_t& context) {
    seen.push_back(context.cnp_delta);
    return keep_window(context);
  };
  world.controller.add(0, scripted("a", nothing));
  world.controller.add(1, scripted("b", kBoth, event));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.pages.cnps(17, 9);
  world.run(2 * kInterval);
  REQUIRE(world.controller.apply(1) == MANGO_STATUS_OK);
  world.pages.cnps(17, 2);
  world.run(3 * kInterval);
  CHECK(seen == std::vector<uint32_t>{2});
  CHECK(world.cnp_count(17) == 11);
}

TEST_CASE("metrics: an unanswered probe stays pending, and a second request starts no other") {
  PccWorld world;
  bool ask = true;
  std::vector<mango_pcc_context_t> seen;
  Event event = [&](PccScript&, const mango_pcc_context_t& context) {
    seen.push_back(context);
    mango_pcc_result_t result = keep_window(context);
    result.request_rtt_probe = ask;
    return result;
  };
  world.controller.add(0, scripted("a", kBoth, event));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(kInterval);
  ask = false;
  world.run(5 * kInterval);
  CHECK(world.pages.control_of(17).rtt_timeouts == 0);
  world.pages.answer(17, 300'000);
  world.run(6 * kInterval);
  CHECK(seen.back().rtt_updated == 1);
  CHECK(seen.back().latest_rtt_ns == 300'000);
  ask = true;
  world.run(7 * kInterval);
  CHECK(seen.back().rtt_updated == 0);
  CHECK(seen.back().latest_rtt_ns == 300'000);
  world.run(10 * kInterval);
  CHECK(world.pages.control_of(17).rtt_timeouts == 0);
  CHECK(world.pages.control_of(17).probe == 2);
  world.pages.answer(17, 400'000);
  world.run(11 * kInterval);
  CHECK(seen.back().latest_rtt_ns == 400'000);
  CHECK(world.pages.control_of(17).probe == 3);
  // A second algorithm without these metrics.
  std::function<void(PccScript&)> legacy = [&](PccScript&) {
    CHECK(mango_pcc_event_get_val(MANGO_PCC_EVENT_RTT) == 0);
  };
  world.controller.add(1, scripted("b", legacy));
  REQUIRE(world.controller.apply(1) == MANGO_STATUS_OK);
  world.pages.answer(17, 5);
  world.run(12 * kInterval);
}

TEST_CASE("metrics: the window is that of the result; 0 or the same value leaves it unchanged") {
  PccWorld world;
  uint32_t next = 0;
  Event event = [&](PccScript&, const mango_pcc_context_t&) {
    mango_pcc_result_t result{};
    result.new_window = next;
    return result;
  };
  world.controller.add(0, scripted("a", MANGO_PCC_METRIC_NONE, event));
  world.pages.activate(17);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(3 * kInterval);
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW);
  CHECK(world.logged == std::vector<std::string>{"[poller 0][QP 17] algorithm a: a new_window of 0 "
                                                 "leaves the window as it is"});
  next = 9000;
  world.run(5 * kInterval);
  CHECK(world.pages.window(17) == 9000);
  CHECK(world.calls(17) == 2);  // set twice, the second time to the same value
  next = 5;
  world.run(6 * kInterval);
  CHECK(world.pages.window(17) == ROCEFS_LEAST_WINDOW);
}

TEST_CASE("metrics: reserved octets of a result are ignored, with one warning per slot") {
  PccWorld world;
  Event event = [](PccScript&, const mango_pcc_context_t& context) {
    mango_pcc_result_t result = keep_window(context);
    result._reserved[26] = 1;
    return result;
  };
  world.controller.add(0, scripted("a", MANGO_PCC_METRIC_NONE, event));
  for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  world.run(5 * kInterval);
  CHECK(world.logged.size() == 1);
  CHECK(logged(world, "reserved octets"));
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW);
}

TEST_CASE("metrics: a log call makes one line with its poller and queue pair") {
  PccWorld world;
  std::function<void(PccScript&)> talk = [](PccScript&) {
    mango_pcc_log(MANGO_LOG_LEVEL_INFO, "cwnd %u\nof %s\n", 7u, "me");
    mango_pcc_log(MANGO_LOG_LEVEL_INFO, "%s", std::string(2000, 'x').c_str());
    mango_pcc_log(static_cast<mango_log_level_e>(9), "never");
    mango_pcc_log(MANGO_LOG_LEVEL_INFO, nullptr);
  };
  world.controller.add(0, scripted("a", talk));
  world.pages.activate(18);
  REQUIRE(world.begin(2) == MANGO_STATUS_OK);
  for (TimeNs now : {TimeNs{0}, kInterval}) world.controller.poll(1, now);
  REQUIRE(world.logged.size() == 2);
  CHECK(world.logged[0] == "[poller 1][QP 18] cwnd 7 of me");
  CHECK(world.logged[1] == "[poller 1][QP 18] " + std::string(511, 'x'));
}

TEST_CASE("metrics: outside an algorithm nothing can be read, set or requested") {
  CHECK(mango_pcc_window_current() == 0);
  mango_pcc_window_update(5000);
  CHECK(mango_pcc_event_get_val(MANGO_PCC_EVENT_CNP) == 0);
  CHECK(mango_pcc_event_request(MANGO_PCC_EVENT_RTT) == MANGO_STATUS_BAD_STATE);
}
