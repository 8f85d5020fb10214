// Memory of an idle connected queue pair.
#include <fmt/format.h>
#include <malloc.h>

#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {

// Bytes that malloc has handed out, its own overhead included, in a device with 10,000 queue pairs
// of the default depth.
void bench_memory(Table& table) {
  constexpr unsigned kPairs = 5'000;
  Net net(star(2, false, 10'000'000'000, kMicrosecond));
  std::vector<std::unique_ptr<Pair>> pairs;
  pairs.reserve(kPairs);
  // Completion queues, memory and their tables are not part of a queue pair.
  Pair::Size size{4096, QpInit{}.send_depth, 128};
  size_t outside = 0;
  {
    size_t before = mallinfo2().uordblks;
    CompletionQueue queue(2 * size.depth);
    auto near = LocalMemory::create(4096), far = LocalMemory::create(4096);
    outside = mallinfo2().uordblks - before + sizeof(Pair) - sizeof(CompletionQueue);
  }
  size_t before = mallinfo2().uordblks;
  for (unsigned i = 0; i < kPairs; ++i) {
    pairs.push_back(std::make_unique<Pair>(net.fabric, "d0", "d1", size));
  }
  double each =
      (static_cast<double>(mallinfo2().uordblks - before) / kPairs - static_cast<double>(outside)) /
      2;
  Row row{"memory per idle queue pair, of 10,000", fmt::format("{:.0f} B", each), "", "", ""};
  table.push_back(judged(row, each, Bound::kAtMost, 4096, " B"));
}

}  // namespace rocefs::bench
