// Queue pairs at rest: calls that would change nothing are counted, and not made.
#include <catch2/catch.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/rng.h"
#include "test/pcc/pages.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

mango_pcc_algo_event_fn* counted_event = nullptr;
unsigned calls_made = 0;

// A queue pair, 17, under a built-in algorithm whose calls are counted. A traced one never rests.
struct Rig {
  PccWorld world;
  unsigned slot = kBuiltIns;
  Rig(const char* name, bool traced = false) {
    add_built_ins(world.controller);
    PccAlgorithm algorithm = *world.controller.algorithm(*world.controller.find(name));
    algorithm.name = "counted";
    counted_event = algorithm.event;
    algorithm.event = [](void* block, const mango_pcc_context_t* context) {
      ++calls_made;
      return counted_event(block, context);
    };
    REQUIRE(world.controller.add(slot, std::move(algorithm)) == MANGO_STATUS_OK);
    REQUIRE(world.controller.apply(slot) == MANGO_STATUS_OK);
    world.pages.signals->trace_calls = traced;
    world.pages.activate(17);
    REQUIRE(world.begin() == MANGO_STATUS_OK);
    world.run(0);
    calls_made = 0;
  }
  void set(const char* name, const char* value) {
    PccController::Change change{name, value};
    REQUIRE(world.controller.update(slot, {&change, 1}));
  }
  // Number of calls that the algorithm gets at the next times of a call.
  unsigned made(unsigned times = 1) {
    const unsigned before = calls_made;
    for (unsigned i = 0; i < times; ++i) world.run(world.now + PccWorld::kInterval);
    return calls_made - before;
  }
  // dcqcn rests once its congestion probability has no effect, which 0.9375^688 has not, and its
  // window is the largest: at most 820 calls here.
  void go_to_rest() {
    made(820 + 688);
    REQUIRE(made(100) == 0);
  }
};

}  // namespace

TEST_CASE("rest: a queue pair whose calls change nothing is called again when a CNP has come") {
  Rig rig("dcqcn");
  CHECK(rig.made(100) == 100);  // the window stays, the probability falls
  rig.go_to_rest();
  const uint32_t counted = rig.world.calls(17);
  CHECK(rig.made(100) == 0);
  CHECK(rig.world.calls(17) == counted + 100);
  rig.world.pages.cnps(17, 1);
  CHECK(rig.made() == 1);
  CHECK(rig.made(5) == 5);
}

TEST_CASE("rest: a change of parameters ends it") {
  Rig rig("dcqcn");
  rig.go_to_rest();
  rig.set("max_window", "0x40000");
  CHECK(rig.made() == 1);
  CHECK(rig.world.pages.window(17) == 0x40000);
  rig.go_to_rest();
  auto walk = [](const char* name, mango_pcc_param_type_e, void* at, void*) {
    const uint32_t most = 0x30000;
    if (std::strcmp(name, "max_window") == 0) std::memcpy(at, &most, sizeof most);
  };
  REQUIRE(rig.world.controller.walk(rig.slot, walk, nullptr, 1) == MANGO_STATUS_OK);
  CHECK(rig.made() == 1);
  CHECK(rig.world.pages.window(17) == 0x30000);
  rig.go_to_rest();
  PccAlgorithm next = *rig.world.controller.algorithm(rig.slot);
  REQUIRE(rig.world.controller.replace(rig.slot, std::move(next)) == MANGO_STATUS_OK);
  CHECK(rig.made() == 1);
}

TEST_CASE("rest: all calls are made while they are traced") {
  Rig rig("dcqcn", true);
  rig.made(700);
  CHECK(rig.made(100) == 100);
  rig.world.pages.signals->trace_calls = 0;
  CHECK(rig.made(100) <= 1);  // the latest traced call may have brought it to rest
  rig.world.pages.signals->trace_calls = 1;
  CHECK(rig.made(100) == 100);
}

TEST_CASE("rest: aimd rests at the largest window that a register holds") {
  Rig rig("aimd");
  rig.set("alpha", "0x40000000");
  CHECK(rig.made(5) == 5);
  CHECK(rig.world.pages.window(17) == ROCEFS_NO_WINDOW - 1);
  CHECK(rig.made(5) <= 1);
  rig.world.pages.cnps(17, 1);
  CHECK(rig.made() == 1);
  CHECK(rig.world.pages.window(17) == (ROCEFS_NO_WINDOW - 1) / 2);
}

TEST_CASE("rest: rttvegas, which asks for a round trip in each call, never rests") {
  Rig rig("rttvegas");
  rig.made(1000);
  CHECK(rig.made(100) >= 100);
}

TEST_CASE("rest: windows and counts are those of a queue pair that never rests") {
  for (const char* name : {"aimd", "dcqcn"}) {
    for (const char* mode : {"0", "1"}) {
      INFO(name << " " << mode);
      std::vector<std::pair<uint32_t, uint32_t>> seen[2];
      unsigned made[2] = {};
      for (bool traced : {false, true}) {
        Rig rig(name, traced);
        if (std::strcmp(name, "dcqcn") == 0) {
          rig.set("mode", mode);
          rig.set("wai", "800");
        }
        Rng rng(5, "cnps");
        for (int round = 0; round < 40; ++round) {
          // A burst of CNPs, then a silence: some of it is longer than it takes to rest.
          for (int i = 0; i < 20; ++i) {
            rig.world.pages.cnps(17, rng.below(3));
            made[traced] += rig.made();
            seen[traced].emplace_back(rig.world.pages.window(17), rig.world.calls(17));
          }
          const uint64_t silence = rng.below(6'000);
          for (uint64_t i = 0; i < silence; ++i) {
            made[traced] += rig.made();
            seen[traced].emplace_back(rig.world.pages.window(17), rig.world.calls(17));
          }
        }
      }
      CHECK(seen[0] == seen[1]);
      CHECK(made[1] == seen[1].size());
      if (std::strcmp(name, "dcqcn") == 0) CHECK(made[0] < made[1] / 2);
    }
  }
}
