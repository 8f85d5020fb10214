#include "test/bench/bench.h"

#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>

#include "core/base/clock.h"

namespace rocefs::bench {
namespace {

double thread_ns() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double wall_ns(const std::function<void()>& work) {
  TimeNs begin = monotonic_ns();
  work();
  return static_cast<double>(monotonic_ns() - begin);
}

double cpu_ns(const std::function<void()>& work) {
  double begin = thread_ns();
  work();
  return thread_ns() - begin;
}

double Rounds::ratio(size_t contestant, size_t other) const {
  std::vector<double> ratios;
  for (size_t round = 0; round < values_[contestant].size(); ++round) {
    ratios.push_back(values_[contestant][round] / values_[other][round]);
  }
  return median(std::move(ratios));
}

Rounds interleave(int rounds, const std::vector<std::function<double()>>& contestants) {
  Rounds all(contestants.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < contestants.size(); ++i) all.add(i, contestants[i]());
  }
  return all;
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
}

void unpin() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
}

Row judged(Row row, double value, Bound bound, double goal, const std::string& unit) {
  bool met = bound == Bound::kAtMost ? value <= goal : value >= goal;
  row.verdict = met ? Row::Verdict::kMet : Row::Verdict::kMissed;
  row.goal = fmt::format("{} {:g}{}", bound == Bound::kAtMost ? "<=" : ">=", goal, unit);
  return row;
}

}  // namespace rocefs::bench
