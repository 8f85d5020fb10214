// Algorithms without a device: recorded calls, replayed.
#include "pcc/run/offline.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "pcc/api/rocefs_pcc.h"
#include "pcc/run/replay.h"
#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kInterval = PccWorld::kInterval;
constexpr uint64_t kSeed = 7;  // of PccWorld
using Act = std::function<mango_pcc_result_t(PccScript&, const mango_pcc_context_t&)>;

// Records the calls that the pages hold since the last take().
class Recorder {
 public:
  explicit Recorder(PccWorld& world) : world_(world) { world.pages.signals->trace_calls = 1; }
  std::vector<rocefs_call_entry> take() {
    const rocefs_control_page& page = *world_.pages.control;
    REQUIRE(page.calls_traced - taken_ <= ROCEFS_CALL_ENTRIES);
    std::vector<rocefs_call_entry> entries;
    for (; taken_ < page.calls_traced; ++taken_) {
      entries.push_back(page.calls[taken_ % ROCEFS_CALL_ENTRIES]);
    }
    return entries;
  }

 private:
  PccWorld& world_;
  uint64_t taken_ = 0;
};

struct Outcome {
  uint64_t same = 0, differ = 0, left_out = 0;
  std::vector<uint32_t> missing;
};

Outcome replay(const PccAlgorithm& algorithm, const std::vector<rocefs_call_entry>& entries,
               uint64_t seed = kSeed) {
  auto offline = PccOffline::of(algorithm, seed, [](mango_log_level_e, std::string_view) {});
  REQUIRE(offline);
  PccReplay all(**offline);
  Outcome outcome;
  for (const rocefs_call_entry& entry : entries) {
    if (entry.call.kind != ROCEFS_QP_CALL) {
      REQUIRE(all.add(entry.event));
      continue;
    }
    Result<PccReplay::Step> step = all.add(entry.call);
    REQUIRE(step);
    if (step->missing > 0) outcome.missing.push_back(step->missing);
    const bool same = step->decision.window == entry.call.new_window &&
                      step->decision.rate_bps == entry.call.rate_bps &&
                      step->decision.probe == ((entry.call.flags & ROCEFS_CALL_PROBE) != 0);
    ++(!step->replayed ? outcome.left_out : same ? outcome.same : outcome.differ);
  }
  return outcome;
}

// An engine that answers probes, sends CNPs and tells of acknowledgements, differently for each of
// its queue pairs.
void drive(PccWorld& world, Rng& rng, TimeNs until) {
  while (world.now < until) {
    for (uint32_t qpn : {17u, 18u, 19u}) {
      if (rng.chance(0.2)) world.pages.cnps(qpn, rng.below(4));
      const auto& control = world.pages.control_of(qpn);
      if (control.probe != world.pages.signals_of(qpn).rtt_probe && rng.chance(0.5)) {
        world.pages.answer(qpn, 1000 + rng.below(30'000));
      }
      for (uint64_t n = rng.below(3); n > 0; --n) {
        world.pages.add_event(qpn, static_cast<uint32_t>(rng.below(4096)));
      }
    }
    world.run(world.now + 10 * kMicrosecond);
  }
}

std::vector<rocefs_call_entry> recorded(const PccAlgorithm& algorithm, TimeNs until) {
  PccWorld world;
  Recorder recorder(world);
  REQUIRE(world.controller.add(0, algorithm) == MANGO_STATUS_OK);
  for (uint32_t qpn : {17u, 18u, 19u}) {
    world.pages.activate(qpn);
    world.pages.signals_of(qpn).line_bps = 100'000'000'000;
  }
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  Rng rng(1, "engine");
  std::vector<rocefs_call_entry> entries;
  for (TimeNs at = 0; at < until; at += kMillisecond) {
    drive(world, rng, at + kMillisecond);
    for (const rocefs_call_entry& entry : recorder.take()) entries.push_back(entry);
  }
  return entries;
}

// Takes events, probes at times, keeps state and sets rates: `gain` makes it another algorithm.
struct Mixture {
  uint32_t gain = 4;
  uint64_t seen = 0;
  Act act = [this](PccScript& script, const mango_pcc_context_t& context) {
    rocefs_pcc_event_t event;
    while (rocefs_pcc_event_next(&event)) script.kept += event.bytes;
    script.kept += context.latest_rtt_ns / 100 + context.active_qp_count;
    rocefs_pcc_rate_update(rocefs_pcc_line_rate() / (1 + script.kept % 7));
    mango_pcc_result_t result{};
    result.new_window =
        2048 + static_cast<uint32_t>((script.kept * gain + rocefs_pcc_now()) % 9999);
    if (context.rtt_updated || script.number++ % 5 == 0) result.request_rtt_probe = 1;
    if (context.cnp_delta > 0) result.new_window /= context.cnp_delta + 1;
    return result;
  };
  PccAlgorithm algorithm() {
    return scripted("mixture",
                    MANGO_PCC_METRIC_CNP | MANGO_PCC_METRIC_RTT | ROCEFS_PCC_METRIC_EVENTS, act);
  }
};

size_t calls_of(const std::vector<rocefs_call_entry>& entries) {
  return static_cast<size_t>(std::count_if(
      entries.begin(), entries.end(),
      [](const rocefs_call_entry& entry) { return entry.call.kind == ROCEFS_QP_CALL; }));
}

}  // namespace

TEST_CASE("pcc offline: recorded calls of built-in algorithms give the same decisions") {
  PccAlgorithm (*const built_in[])() = {aimd_algorithm, dcqcn_algorithm, rttvegas_algorithm};
  PccAlgorithm algorithm = built_in[GENERATE(0, 1, 2)]();
  INFO(algorithm.name);
  auto entries = recorded(algorithm, 50 * kMillisecond);
  const size_t calls = calls_of(entries);
  CHECK(calls > 2000);
  Outcome outcome = replay(algorithm, entries);
  CHECK(outcome.same == calls);
  CHECK(outcome.differ + outcome.left_out == 0);
}

TEST_CASE("pcc offline: events, round trips, rates and state are replayed") {
  Mixture mixture;
  auto entries = recorded(mixture.algorithm(), 50 * kMillisecond);
  const size_t calls = calls_of(entries);
  CHECK(calls > 1000);
  CHECK(entries.size() > calls + 1000);
  CHECK(replay(mixture.algorithm(), entries).same == calls);
  mixture.gain = 5;
  CHECK(replay(mixture.algorithm(), entries).differ > calls / 2);
}

TEST_CASE("pcc offline: a changed parameter shows") {
  PccAlgorithm algorithm = aimd_algorithm();
  auto entries = recorded(algorithm, 5 * kMillisecond);
  auto offline = PccOffline::of(algorithm, kSeed, [](mango_log_level_e, std::string_view) {});
  REQUIRE(offline);
  CHECK((*offline)->set({"alpha", "5000"}));
  CHECK(*(*offline)->value("alpha", 17) == "5000");
  CHECK((*offline)->set({"beta", "2"}).error().code == EINVAL);
  CHECK((*offline)->set({"none", "2"}).error().code == ENOENT);
  CHECK((*offline)->value("none", 17).error().code == ENOENT);
  CHECK(replay((*offline)->algorithm(), entries).differ > 0);
}

TEST_CASE(
    "pcc offline: a recording from the middle of a life is left out, one with a hole from there") {
  Mixture mixture;
  auto entries = recorded(mixture.algorithm(), 2 * kMillisecond);
  const size_t calls = calls_of(entries);
  auto of = [&](uint32_t qpn) {
    return static_cast<size_t>(
        std::count_if(entries.begin(), entries.end(), [&](const rocefs_call_entry& entry) {
          return entry.call.kind == ROCEFS_QP_CALL && entry.call.qpn == qpn;
        }));
  };
  auto without = [&](uint32_t qpn, uint32_t number) {
    auto rest = entries;
    std::erase_if(rest, [&](const rocefs_call_entry& entry) {
      return entry.call.kind == ROCEFS_QP_CALL && entry.call.qpn == qpn &&
             entry.call.number == number;
    });
    return replay(mixture.algorithm(), rest);
  };
  Outcome first = without(17, 1);
  CHECK(first.same == calls - of(17));
  CHECK(first.left_out == of(17) - 1);
  CHECK(first.missing == std::vector<uint32_t>{1});
  Outcome hole = without(18, 10);
  CHECK(hole.same == calls - of(18) + 9);
  CHECK(hole.differ == 0);
  CHECK(hole.missing == std::vector<uint32_t>{10});
}

TEST_CASE("pcc offline: a queue pair that begins again begins anew") {
  Mixture mixture;
  auto entries = recorded(mixture.algorithm(), kMillisecond);
  auto twice = entries;
  twice.insert(twice.end(), entries.begin(), entries.end());
  CHECK(replay(mixture.algorithm(), twice).same == 2 * calls_of(entries));
}

TEST_CASE("pcc offline: a call for a queue pair that is none, or has not begun, is refused") {
  auto offline = PccOffline::of(aimd_algorithm(), 1, [](mango_log_level_e, std::string_view) {});
  REQUIRE(offline);
  for (uint32_t qpn : {0u, 16u, 17u + ROCEFS_MAX_QPS, ~0u}) {
    CHECK((*offline)->call({.qpn = qpn, .first = true}).error().code == EINVAL);
  }
  CHECK((*offline)->call({.qpn = 18}).error().code == EINVAL);
  CHECK((*offline)->call({.qpn = 18, .first = true}));
  CHECK((*offline)->call({.qpn = 18, .generation = 2}).error().code == EINVAL);
}

TEST_CASE("pcc offline: an algorithm that writes past its parameters is not called again") {
  uint32_t called = 0;
  Act act = [&](PccScript& script, const mango_pcc_context_t& context) {
    ++called;
    reinterpret_cast<uint8_t*>(&script)[sizeof script] = 0;
    return keep_window(context);
  };
  auto offline =
      PccOffline::of(scripted("bad", 0, act), 1, [](mango_log_level_e, std::string_view) {});
  REQUIRE(offline);
  CHECK((*offline)->call({.first = true}).error().code == EFAULT);
  CHECK((*offline)->call({.first = true}).error().code == EFAULT);
  CHECK(called == 1);
}

TEST_CASE("pcc offline: events without a call are limited") {
  auto offline = PccOffline::of(aimd_algorithm(), 1, [](mango_log_level_e, std::string_view) {});
  REQUIRE(offline);
  PccReplay all(**offline);
  rocefs_qp_event event{};
  event.qpn = 17;
  Result<void> added;
  for (uint32_t n = 0; added && n <= ROCEFS_EVENT_ENTRIES * MANGO_PCC_MAX_THREADS; ++n) {
    added = all.add(event);
  }
  REQUIRE(!added);
  CHECK(added.error().code == ENOBUFS);
}
