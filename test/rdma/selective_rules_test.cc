// What selective retransmission must never do, whatever happens to packets, to the bit by which it
// is agreed and to its knobs.
#include <cstdlib>
#include <map>

#include "test/rdma/pair.h"
#include "test/rdma/random_run.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Totals = std::map<std::string, uint64_t>;

// As many seeds as are given, or those that the environment names: one, or FROM-TO.
template <class Options>
Totals run_seeds(uint64_t runs, const char* name, Options options_of) {
  Totals totals;
  uint64_t from = 1, to = runs;
  if (const char* given = std::getenv("ROCEFS_SEED")) {
    char* end = nullptr;
    from = to = std::strtoull(given, &end, 0);
    if (*end == '-') to = std::strtoull(end + 1, nullptr, 0);
  }
  for (uint64_t seed = from; seed <= to; ++seed) {
    INFO("replay with: ROCEFS_SEED=" << seed << " build/test/rdma_test '" << name << "*'");
    Rng rng(seed, "options");
    RandomRun run(seed, options_of(rng));
    run.run();
    run.add_to(totals);
  }
  return totals;
}

bool replays() {
  return std::getenv("ROCEFS_SEED") != nullptr;
}

constexpr uint64_t kRuns = 1000;

}  // namespace

TEST_CASE("selective: bytes arrive once, whole and in order with agreement of both ends") {
  auto totals = run_seeds(kRuns, "selective: bytes arrive", [](Rng& rng) {
    RunOptions options;
    options.near_sr = options.far_sr = true;
    options.ops = rng.chance(0.5);
    return options;
  });
  if (replays()) return;
  for (const char* happened : {"sr_retrans", "sr_ooo_placed", "out_of_sequence", "packet_seq_err",
                               "local_ack_timeout_err", "rx_icrc_encapsulated"}) {
    INFO(happened);
    CHECK(totals[std::string("hw_counters/") + happened] > kRuns / 4);
  }
}

TEST_CASE("selective: a far end that does not agree gets go-back-N, and nothing is harmed") {
  auto totals = run_seeds(kRuns, "selective: a far end that", [](Rng& rng) {
    RunOptions options;
    options.near_sr = rng.chance(0.5);
    options.far_sr = !options.near_sr;
    options.ops = rng.chance(0.3);
    return options;
  });
  if (replays()) return;
  CHECK(totals["hw_counters/sr_ooo_placed"] == 0);
  CHECK(totals["hw_counters/out_of_sequence"] > kRuns);
}

TEST_CASE("selective: the bit of agreement may turn over on the wire, and nothing is harmed") {
  auto totals = run_seeds(kRuns, "selective: the bit", [](Rng& rng) {
    RunOptions options;
    options.near_sr = rng.chance(0.7);
    options.far_sr = rng.chance(0.7);
    options.ops = rng.chance(0.3);
    constexpr double kFlips[] = {0.01, 0.1, 0.3, 0.5};
    options.flip = kFlips[rng.below(4)];
    return options;
  });
  if (replays()) return;
  CHECK(totals["hw_counters/sr_retrans"] > kRuns);
}

TEST_CASE("selective: knobs that change at any moment lose nothing and harm nothing") {
  auto totals = run_seeds(kRuns, "selective: knobs", [](Rng& rng) {
    RunOptions options;
    options.near_sr = rng.chance(0.5);
    options.far_sr = rng.chance(0.5);
    options.toggle = 0.002 + rng.uniform() * 0.05;
    options.flip = rng.chance(0.2) ? 0.1 : 0;
    return options;
  });
  if (replays()) return;
  CHECK(totals["hw_counters/sr_retrans"] > kRuns / 4);
  CHECK(totals["hw_counters/sr_ooo_placed"] > kRuns / 4);
}
