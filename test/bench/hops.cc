// 16 flows of 17 devices on a switch into one port, under the virtual clock: how many deliveries by
// links one second of CPU buys.
#include <fmt/format.h>

#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {

void bench_hops(Table& table) {
  constexpr unsigned kFlows = 16;
  constexpr uint64_t kMessage = 64 << 10;  // a flow's default
  constexpr TimeNs kRound = 20 * kMillisecond;
  Net net(star(kFlows + 1, true, 100'000'000'000, kMicrosecond));
  std::vector<std::unique_ptr<Pair>> flows;
  std::vector<Pair*> done;
  for (unsigned i = 1; i <= kFlows; ++i) {
    // 16 windows fit the switch's buffer.
    Pair::Size size{2 * kMessage, 4, 16};
    flows.push_back(std::make_unique<Pair>(net.fabric, "d" + std::to_string(i), "d0", size));
    Pair* flow = flows.back().get();
    flow->set_listener([&done, flow] { done.push_back(flow); });
    for (unsigned j = 0; j < 2; ++j) flows.back()->write(j * kMessage, kMessage);
  }
  auto round = [&] {
    TimeNs end = net.scheduler.now() + kRound;
    uint64_t before = net.hops();
    double ns = cpu_ns([&] {
      while (net.scheduler.run_one(end)) {
        for (Pair* flow : std::exchange(done, {})) {
          for (size_t taken = flow->completed(); taken > 0; --taken) flow->write(0, kMessage);
        }
      }
    });
    return static_cast<double>(net.hops() - before) / ns * 1e3;
  };
  double millions = interleave(9, {round})[0];
  Row row{"packet-hops per CPU second, 16 flows into one port", fmt::format("{:.2f} M/s", millions),
          "", "", ""};
  table.push_back(judged(row, millions, Bound::kAtLeast, 2, " M/s"));
}

}  // namespace rocefs::bench
