// Two pairs of NICs, not connected to each other, on an engine with two packet cores, against one
// with one core: a pair on each core, and the NICs of each pair on both. All send the same WRITEs
// over links that are faster than any CPU.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <vector>

#include "core/loop/engine.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

constexpr uint32_t kPacket = 4096;
constexpr uint32_t kDepth = 128;
constexpr uint64_t kMemory = 64 << 10;
constexpr uint64_t kPackets = 400'000;  // of each pair in a round

Topology two_pairs() {
  Topology topology;
  constexpr const char* kNames[] = {"a0", "b0", "a1", "b1"};
  for (size_t i = 0; i < 4; ++i) topology.devices.push_back(nth_device(kNames[i], i + 1));
  for (size_t i = 0; i < 4; i += 2) {
    LinkSpec link{kNames[i], kNames[i + 1]};
    link.rate_bps = 10'000'000'000'000;
    link.delay_ns = 0;
    topology.links.push_back(link);
  }
  return topology;
}

double thread_ns() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Posts, and takes completions, between batches of events, as a core's clients do.
class Sender final : public Poller {
 public:
  void add(Pair& pair) { flows_.push_back({&pair}); }

  Found poll(bool) override {
    if (over_) return Found::kNothing;
    if (begun_ == 0) begun_ = thread_ns();
    uint64_t left = 0;
    bool any = false;
    for (Flow& flow : flows_) {
      const size_t completed = flow.pair->completed();
      any |= completed > 0 || flow.posted == 0;
      flow.done += completed;
      for (; flow.posted < kPackets && flow.posted - flow.done < kDepth; ++flow.posted) {
        flow.pair->write(flow.posted * kPacket % kMemory, kPacket);
      }
      left += kPackets - flow.done;
    }
    if (left > 0) return any ? Found::kSome : Found::kNothing;
    over_ = true;
    cpu_ns_.set_value(thread_ns() - begun_);
    return Found::kNothing;
  }
  bool may_sleep() override { return true; }
  void awake() override {}
  TimeNs lag() override { return 0; }
  // Waits for the end; nanoseconds of the core's CPU.
  double cpu_ns() { return flows_.empty() ? 0 : cpu_ns_.get_future().get(); }

 private:
  struct Flow {
    Pair* pair;
    uint64_t posted = 0, done = 0;
  };
  std::vector<Flow> flows_;
  bool over_ = false;
  double begun_ = 0;
  std::promise<double> cpu_ns_;
};

struct Times {
  double wall_ns = 0;
  double cpu_ns = 0;  // of the core that took most
};

Times run(const Topology& topology, const CorePlan& plan) {
  PollLoop control;
  Engine::Options options;
  options.cores = plan.cores();
  auto engine = Engine::create(options, control);
  require(bool(engine), "no engine");
  Fabric fabric(topology, 1, **engine, plan);
  for (const auto& device : fabric.devices()) {
    require(bool(device->registers().open(ClockMode::kReal)), "no memory for registers");
  }
  std::array<Sender, 2> senders;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (const char* number : {"0", "1"}) {
    const std::string from = std::string("a") + number, to = std::string("b") + number;
    pairs.push_back(std::make_unique<Pair>(fabric, from, to, Pair::Size{kMemory, kDepth, kDepth}));
    senders[plan.core_of(from)].add(*pairs.back());
  }
  for (size_t i = 0; i < plan.cores(); ++i) (*engine)->core(i).set_poller(senders[i]);
  Times times;
  times.wall_ns = wall_ns([&] {
    (*engine)->start();
    for (Sender& one : senders) times.cpu_ns = std::max(times.cpu_ns, one.cpu_ns());
  });
  (*engine)->stop();
  pairs.clear();
  return times;
}

std::string rate(double ns) {
  return fmt::format("{:.2f} M/s", 2 * kPackets * 1000 / ns);
}

}  // namespace

void bench_cores(Table& table) {
  const Topology topology = two_pairs();
  const std::array<CorePlan, 3> plans{
      CorePlan(), CorePlan(topology, 2),
      CorePlan::of({{"a0", 0}, {"b0", 1}, {"a1", 1}, {"b1", 0}}, 2)};
  Rounds wall(plans.size()), cpu(plans.size());
  for (int round = 0; round < 11; ++round) {
    for (size_t i = 0; i < plans.size(); ++i) {
      const Times times = run(topology, plans[i]);
      wall.add(i, times.wall_ns);
      cpu.add(i, times.cpu_ns);
    }
  }
  auto row = [](const char* figure, const Rounds& ns, size_t plan) {
    return Row{figure, rate(ns[plan]), rate(ns[0]) + " one core",
               fmt::format("{:.2f}", ns.ratio(0, plan)), ""};
  };
  table.push_back(judged(row("packets of two pairs of NICs on two cores", wall, 1),
                         wall.ratio(0, 1), Bound::kAtLeast, 1.6, ""));
  table.push_back(row("  per second of CPU of the busier core", cpu, 1));
  table.push_back(row("  with the cable of each pair between the cores", wall, 2));
  table.push_back(row("    per second of CPU of the busier core", cpu, 2));
}

}  // namespace rocefs::bench
