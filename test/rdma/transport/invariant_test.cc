// Thousands of seeded runs of sends, writes, reads and atomics under loss, duplication, reordering
// and damage: every received byte is the sent one, no work request completes before its last byte
// is placed, completions come in order and exactly once, atomics are executed once and in order,
// and nothing beside the targets is touched.
#include <map>

#include "test/rdma/transport/random_run.h"
#include "test/rdma/transport/seeds.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("invariants: bytes arrive once, whole and in order, whatever happens to packets") {
  constexpr uint64_t kRuns = seeds(3000);
  std::map<std::string, uint64_t> totals;
  for_seeds(kRuns, "invariants: bytes arrive", [&](uint64_t seed) {
    RandomRun run(seed);
    run.run();
    run.add_to(totals);
  });
  if (replays()) return;
  for (const char* happened : {"out_of_sequence", "duplicate_request", "packet_seq_err",
                               "local_ack_timeout_err", "rnr_nak_retry_err", "rx_icrc_encapsulated",
                               "implied_nak_seq_err", "rx_read_requests", "rx_atomic_requests"}) {
    INFO(happened);
    CHECK(totals[std::string("hw_counters/") + happened] > kRuns / 4);
  }
}
