// Cost of windows set by PCC.
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "pcc/algorithms/built_ins.h"
#include "pcc/run/controller.h"
#include "pcc/run/poller_threads.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"

namespace rocefs::bench {
namespace {

// Zeroed memory that is allocated when touched.
template <class Page>
class Mapped {
 public:
  Mapped()
      : page_(static_cast<Page*>(::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Mapped() { ::munmap(page_, sizeof(Page)); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  Page& operator*() const { return *page_; }
  Page* operator->() const { return page_; }

 private:
  Page* page_;
};

constexpr TimeNs kInterval = 60 * kMicrosecond;

// Queue pairs with CNPs, one in 16 at each call: the same ones, or others in turn.
enum class Cnps { kForSome, kForAll };

// A device with `qps` active queue pairs, controlled by dcqcn.
struct Work {
  Mapped<rocefs_signals_page> signals;
  Mapped<rocefs_control_page> control;
  PccController controller{1, [](mango_log_level_e, std::string_view) {}};
  const unsigned qps;
  const Cnps cnps;
  unsigned first = 0;  // queue pair with a CNP in the next round
  TimeNs now = 0;

  explicit Work(unsigned count, Cnps which = Cnps::kForSome) : qps(count), cnps(which) {
    signals->version = control->version = ROCEFS_REGISTERS_VERSION;
    signals->dilation = 1;
    for (unsigned line = 0; line < count; ++line) {
      signals->qps[line].generation = 1;
      signals->active[line / 64] |= uint64_t{1} << line % 64;
    }
    signals->active_count = count;
    signals->changes = 1;
    add_built_ins(controller);
    (void)controller.apply(*controller.find("dcqcn"));
    controller.set_interval(kInterval);
    (void)controller.begin(&*signals, &*control, 1);
  }
  // Serves every queue pair once.
  void round() {
    for (unsigned line = first; line < qps; line += 16) ++signals->qps[line].cnps;
    if (cnps == Cnps::kForAll) first = (first + 1) % 16;
    now += kInterval;
    controller.poll(0, now);
  }
};

// Lower bound: the same words, the additions of the same law, no calls.
struct Line {
  uint64_t window, cnps, seen;
  double target, probability;
  uint64_t rest[3];
};
void bare_round(std::vector<Line>& lines) {
  for (size_t i = 0; i < lines.size(); i += 16) ++lines[i].cnps;
  for (Line& line : lines) {
    if (line.cnps != line.seen) {
      line.target = static_cast<double>(line.window);
      line.window /= 2;
      line.probability = line.probability * 0.9375 + 0.0625;
    } else {
      line.probability *= 0.9375;
      line.target += 80;
      line.window = static_cast<uint64_t>((line.target + static_cast<double>(line.window)) / 2);
    }
    line.seen = line.cnps;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

// Changes the window whenever there was a CNP, and only then.
mango_pcc_result_t toggle(void*, const mango_pcc_context_t* context) {
  mango_pcc_result_t result{};
  result.new_window =
      context->cnp_delta ? context->current_window ^ 0x1000 : context->current_window;
  return result;
}

// Wall time from the engine's store of a CNP until it can see another window.
double cnp_to_window_ns(Work& work) {
  std::atomic_ref window(work.control->qps[0].window);
  uint64_t before = window.load();
  TimeNs start = monotonic_ns();
  std::atomic_ref(work.signals->qps[0].cnps).fetch_add(1);
  while (window.load() == before) std::this_thread::yield();
  return static_cast<double>(monotonic_ns() - start);
}

void bench_latency(Table& table, TimeNs interval) {
  Work work(1);
  work.controller.end();
  work.signals->since_ns = static_cast<uint64_t>(monotonic_ns());
  PccAlgorithm algorithm;
  algorithm.name = "toggle";
  algorithm.event = toggle;
  algorithm.metrics = MANGO_PCC_METRIC_CNP;
  (void)work.controller.add(kBuiltIns, std::move(algorithm));
  (void)work.controller.apply(kBuiltIns);
  work.controller.set_interval(interval);
  (void)work.controller.begin(&*work.signals, &*work.control, 1);
  PollerThreads threads(work.controller, *work.signals, 1);
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) times.push_back(cnp_to_window_ns(work));
  threads.stop();
  table.push_back({fmt::format("CNP to window, called every {} us", interval / kMicrosecond),
                   fmt::format("{:.1f} us", median(times) / 1e3), "", "", ""});
}

void bench_decisions(Table& table, unsigned qps, Cnps cnps) {
  Work work(qps, cnps);
  // Queue pairs without CNPs come to rest.
  for (int i = 0; i < 1000; ++i) work.round();
  std::vector<Line> lines(qps, Line{});
  int rounds = static_cast<int>(400'000 / qps) + 1;
  auto decisions = [&] {
    return wall_ns([&] {
             for (int i = 0; i < rounds; ++i) work.round();
           }) /
           rounds / qps;
  };
  auto bare = [&] {
    return wall_ns([&] {
             for (int i = 0; i < rounds; ++i) bare_round(lines);
           }) /
           rounds / qps;
  };
  Rounds ns = interleave(9, {decisions, bare});
  const char* which = cnps == Cnps::kForAll ? "each with a CNP in 16 calls" : "one in 16 with CNPs";
  table.push_back({fmt::format("dcqcn, {} queue pairs, {}", qps, which),
                   fmt::format("{:.1f} M/s", 1e3 / ns[0]),
                   fmt::format("bare loop {:.0f} M/s", 1e3 / ns[1]),
                   fmt::format("{:.3f}", ns.ratio(1, 0)), ""});
  double share = ns[0] * qps / static_cast<double>(kInterval);
  Row of_cpu{"  of a CPU, called every 60 us", fmt::format("{:.1f} %", 100 * share), "", "", ""};
  table.push_back(qps == 1024 ? judged(of_cpu, 100 * share, Bound::kAtMost, 30, " %") : of_cpu);
}

}  // namespace

void bench_pcc(Table& table) {
  for (unsigned qps : {1u, 64u, 1024u, 4096u}) {
    for (Cnps cnps : {Cnps::kForSome, Cnps::kForAll}) bench_decisions(table, qps, cnps);
  }
  for (TimeNs interval : {60 * kMicrosecond, 5 * kMicrosecond}) bench_latency(table, interval);
}

}  // namespace rocefs::bench
