// Built-in aimd, dcqcn and rttvegas against their laws, step by step.
#include "pcc/algorithms/built_ins.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/base/rng.h"
#include "pcc/api/parameter.h"
#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kInterval = PccWorld::kInterval;

// Rig: queue pair 17 under one built-in algorithm.
struct Rig {
  PccWorld world;
  unsigned slot;
  explicit Rig(const char* name, bool bounds = true) {
    add_built_ins(world.controller);
    slot = *world.controller.find(name);
    if (!bounds) take_bounds();
    REQUIRE(world.controller.apply(slot) == MANGO_STATUS_OK);
    world.pages.activate(17);
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    world.run(0);
  }
  // Goes on with the algorithm as it is, but takes any value.
  void take_bounds() {
    PccAlgorithm algorithm = *world.controller.algorithm(slot);
    algorithm.name = "free";
    for (PccAlgorithm::Parameter& one : algorithm.parameters) {
      one = {one.name, one.type, one.offset};
    }
    slot = *world.controller.free_slot();
    REQUIRE(world.controller.add(slot, std::move(algorithm)) == MANGO_STATUS_OK);
  }
  void set(const char* name, const char* value) {
    PccController::Change change{name, value};
    REQUIRE(world.controller.update(slot, {&change, 1}));
  }
  // Window after a call with `cnps` CNPs.
  uint32_t step(uint64_t cnps) {
    world.pages.cnps(17, cnps);
    world.run(world.now + kInterval);
    return world.pages.window(17);
  }
};

std::string described(const PccController& controller, unsigned slot) {
  std::string text = controller.algorithm(slot)->name;
  for (const auto& parameter : controller.algorithm(slot)->parameters) {
    text += " " + parameter.name + "=" + *controller.value(slot, parameter.name);
  }
  return text;
}

}  // namespace

TEST_CASE("built-ins: names, parameters, defaults and their order are the reference's") {
  PccWorld world;
  add_built_ins(world.controller);
  CHECK(described(world.controller, 0) == "aimd alpha=100 beta=0.5");
  CHECK(described(world.controller, 1) ==
        "dcqcn wai=80 g=0.0625 max_fast_steps=3 mode=1 threshold=0 max_window=524288 "
        "min_window=4096");
  CHECK(described(world.controller, 2) ==
        "rttvegas timeout_us=20 poll_interval_us=1 alpha=4096 beta=16384 mss=1024 d_factor=0.99 "
        "min_window=4096 max_window=5242880");
  CHECK(!world.controller.algorithm(kBuiltIns));
}

TEST_CASE("aimd: a CNP multiplies the window by beta, its absence adds alpha, the least is 1024") {
  Rig rig("aimd");
  CHECK(rig.step(0) == 0x80000 + 100);
  CHECK(rig.step(3) == (0x80000 + 100) / 2);
  rig.set("alpha", "7");
  rig.set("beta", "0.25");
  CHECK(rig.step(0) == 262194 + 7);
  CHECK(rig.step(1) == 262201 / 4);
  for (int i = 0; i < 5; ++i) rig.step(1);
  CHECK(rig.step(1) == 1024);
  CHECK(rig.step(0) == 1031);
  Rig free("aimd", false);
  for (const char* beta : {"-1", "1e300"}) {
    free.set("beta", beta);
    CHECK(free.step(1) == (beta[0] == '-' ? 1024 : 0xfffffffe));
  }
  CHECK(free.step(0) == 0xfffffffe);
}

TEST_CASE("built-ins: a walk's values outside the bounds are undone") {
  Rig rig("dcqcn");
  struct Write {
    std::string_view name;
    ParameterValue value;
  };
  auto write = [](const char* name, mango_pcc_param_type_e, void* at, void* data) {
    const auto& one = *static_cast<Write*>(data);
    if (one.name == name) std::memcpy(at, one.value.bytes.data(), one.value.size);
  };
  auto walk = [&](const char* name, mango_pcc_param_type_e type, const char* text) {
    Write one{name, {}};
    REQUIRE(keep(name, parse_parameter(type, text), one.value));
    return rig.world.controller.walk(rig.slot, write, &one, 1);
  };
  auto value = [&](const char* name) { return *rig.world.controller.value(rig.slot, name); };
  const std::string g = value("g"), least = value("min_window");
  CHECK(walk("g", MANGO_PCC_PARAM_TYPE_DOUBLE, "1.5") == MANGO_STATUS_INVALID_PARAM);
  CHECK(value("g") == g);
  CHECK(walk("min_window", MANGO_PCC_PARAM_TYPE_UINT32, "0x100000") ==
        MANGO_STATUS_INVALID_PARAM);  // above max_window
  CHECK(value("min_window") == least);
  CHECK(walk("g", MANGO_PCC_PARAM_TYPE_DOUBLE, "0.5") == MANGO_STATUS_OK);
  CHECK(value("g") == "0.5");
  REQUIRE(rig.world.controller.apply(0) == MANGO_STATUS_OK);  // the initial block has it, too
  CHECK(value("g") == "0.5");
}

TEST_CASE("dcqcn: deterministic mode follows the recurrence") {
  Rig rig("dcqcn");
  rig.set("mode", "0");
  double window = 0x80000, target = window, probability = 1;
  unsigned step = 0;
  Rng rng(3, "cnps");
  for (int i = 0; i < 3000; ++i) {
    bool cnp = rng.chance(i % 100 < 20 ? 0.3 : 0.02);
    if (cnp) {
      target = window;
      window *= 1 - probability / 2;
      probability = (1 - 0.0625) * probability + 0.0625;
      step = 0;
    } else {
      probability *= 1 - 0.0625;
      if (++step > 3) target += 80;
      window = (target + window) / 2;
    }
    window = std::min(std::max(window, 4096.0), 524288.0);
    REQUIRE(rig.step(cnp) == static_cast<uint32_t>(window));
  }
}

TEST_CASE("dcqcn: the first CNP halves the window in both modes; recovery is fast, then active") {
  for (const char* mode : {"0", "1"}) {
    Rig rig("dcqcn");
    rig.set("mode", mode);
    rig.set("wai", "1000");
    CHECK(rig.step(1) == 0x40000);  // CP is 1
    CHECK(rig.step(0) == 0x60000);
    CHECK(rig.step(0) == 0x70000);
    CHECK(rig.step(0) == 0x78000);
    CHECK(rig.step(0) == (0x80000 + 1000 + 0x78000) / 2);
    for (int i = 0; i < 10; ++i) rig.step(0);
    CHECK(rig.step(0) == 0x80000);  // max_window
  }
}

TEST_CASE("dcqcn: the window is cut if there are more CNPs than the threshold") {
  Rig rig("dcqcn");
  rig.set("threshold", "10");
  CHECK(rig.step(10) == 0x80000);
  CHECK(rig.step(11) < 0x80000);
}

TEST_CASE("dcqcn: probabilistic mode cuts with probability CP, independently for each queue pair") {
  PccWorld world;
  add_built_ins(world.controller);
  REQUIRE(world.controller.apply(1) == MANGO_STATUS_OK);
  std::vector<PccController::Change> changes = {{"g", "0"}, {"min_window", "0"}};
  for (uint32_t qpn : {17u, 18u}) world.pages.activate(qpn);
  REQUIRE(world.begin() == MANGO_STATUS_OK);
  REQUIRE(world.controller.update(1, changes));
  // CP decays to about a half, and stays there.
  changes = {{"g", "0.0625"}};
  REQUIRE(world.controller.update(1, changes));
  world.run(11 * kInterval);
  changes = {{"g", "0"}};
  REQUIRE(world.controller.update(1, changes));
  double probability = std::pow(1 - 0.0625, 11);
  unsigned cuts[2] = {}, different = 0;
  for (int i = 0; i < 4000; ++i) {
    bool cut[2];
    for (uint32_t qpn : {17u, 18u}) world.pages.cnps(qpn, 1);
    uint32_t before[2] = {world.pages.window(17), world.pages.window(18)};
    world.run(world.now + kInterval);
    for (uint32_t n : {0u, 1u}) {
      uint32_t after = world.pages.window(17 + n);
      cut[n] = after < before[n];
      cuts[n] += cut[n];
      if (cut[n]) CHECK(after == std::max(before[n] / 2, ROCEFS_LEAST_WINDOW));
    }
    different += cut[0] != cut[1];
    // Window back at the maximum, so that a cut shows.
    changes = {{"min_window", "0x80000"}};
    REQUIRE(world.controller.update(1, changes));
    world.run(world.now + kInterval);
    changes = {{"min_window", "0"}};
    REQUIRE(world.controller.update(1, changes));
  }
  for (unsigned n : cuts) CHECK(n / 4000.0 == Approx(probability).margin(0.03));
  CHECK(different > 1000);
}

TEST_CASE("dcqcn: the same seed gives the same windows") {
  auto windows = [] {
    Rig rig("dcqcn");
    std::vector<uint32_t> seen;
    for (int i = 0; i < 200; ++i) seen.push_back(rig.step(i % 3 == 0));
    return seen;
  };
  CHECK(windows() == windows());
}

TEST_CASE("dcqcn: nonsensical settings keep the window within its limits") {
  for (auto [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"g", "-1"},
                                                        {"g", "1e308"},
                                                        {"mode", "77"},
                                                        {"max_window", "0"},
                                                        {"wai", "0xffffffff"},
                                                        {"max_fast_steps", "0xffffffff"}}) {
    INFO(name << "=" << value);
    Rig rig("dcqcn", false);
    rig.set(name, value);
    for (int i = 0; i < 100; ++i) {
      uint32_t window = rig.step(i % 5 == 0);
      CHECK(window >= 4096);
      CHECK(window <= 0x80000);
    }
  }
  Rig rig("dcqcn", false);
  rig.set("min_window", "0x100000");
  CHECK(rig.step(1) == 0x100000);  // min_window wins
}

TEST_CASE("rttvegas: the window grows by mss below alpha, shrinks above beta, and holds between") {
  Rig rig("rttvegas");
  PccWorld& world = rig.world;
  // Polls after the answer, at the next look.
  auto measure = [&](uint64_t rtt_ns) {
    world.run(world.now + kInterval);
    REQUIRE(world.pages.control_of(17).probe != world.pages.signals_of(17).rtt_probe);
    world.pages.answer(17, rtt_ns);
    world.run(world.now + kMicrosecond);
    return world.pages.window(17);
  };
  CHECK(measure(10'000) == 0x80000 + 1024);
  uint32_t window = 0x80000 + 1024;
  CHECK(measure(10'050) == window + 1024);  // backlog 2.6 K
  window += 1024;
  CHECK(measure(10'200) == window);                                // 10 K
  CHECK(measure(12'000) == static_cast<uint32_t>(window * 0.99));  // 87 K
  window = static_cast<uint32_t>(window * 0.99);
  CHECK(measure(8'000) == window + 1024);  // new base
  window += 1024;
  CHECK(measure(10'000) == static_cast<uint32_t>(window * 0.99));
  CHECK(world.pages.control_of(17).rtt_timeouts == 0);
  CHECK(world.calls(17) == 12);  // two for each of six probes: request and answer
  rig.set("max_window", "8192");
  CHECK(measure(8'000) == 8192);
}

TEST_CASE("rttvegas: the answer to a probe is polled for at each interval, until the time-out") {
  Rig rig("rttvegas");
  PccWorld& world = rig.world;
  rig.set("timeout_us", "5");
  rig.set("poll_interval_us", "2");
  std::vector<TimeNs> asked;
  TimeNs next = world.poll(0);
  CHECK(next == kInterval);
  for (TimeNs look : {2000, 4000, 5000}) {
    next = world.poll(next);
    CHECK(next == kInterval + look);
  }
  next = world.poll(next);
  CHECK(next == 2 * kInterval);
  CHECK(world.pages.control_of(17).rtt_timeouts == 1);
  // Answer after the timeout: ignored.
  world.pages.answer(17, 4'000);
  next = world.poll(next);
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW);
  // Answer before the look, but over the budget: ignored.
  world.pages.answer(17, 5'001);
  next = world.poll(next);
  CHECK(next == 3 * kInterval);
  CHECK(world.pages.control_of(17).rtt_timeouts == 2);
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW);
  next = world.poll(next);
  world.pages.answer(17, 5'000);
  next = world.poll(next);
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW + 1024);
  CHECK(next == 4 * kInterval);
}

TEST_CASE("rttvegas: with a time-out longer than the interval there is one probe at a time") {
  Rig rig("rttvegas");
  PccWorld& world = rig.world;
  rig.set("timeout_us", "200");
  world.run(3 * kInterval + 10 * kMicrosecond);
  CHECK(world.pages.control_of(17).probe == 1);
  world.pages.answer(17, 130'000);
  world.run(world.now + kMicrosecond);
  CHECK(world.pages.window(17) == ROCEFS_FIRST_WINDOW + 1024);
  world.run(kMillisecond);
  CHECK(world.pages.control_of(17).rtt_timeouts > 2);
  for (auto [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"timeout_us", "0"}, {"poll_interval_us", "0"}, {"timeout_us", "0xffffffff"}}) {
    rig.set(name, value);
    world.run(world.now + kMillisecond);
  }
}
