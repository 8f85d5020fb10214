// Measuring: rounds, medians, and a table in which each figure stands beside its reference and its
// goal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/time.h"

namespace rocefs::bench {

// A line of the table. Empty texts stay blank.
struct Row {
  std::string figure, measured, reference, ratio, goal;
  enum class Verdict { kNone, kMet, kMissed } verdict = Verdict::kNone;
};

using Table = std::vector<Row>;

// A program of measurements, called by name.
struct Bench {
  std::string_view name;
  std::string_view doc;
  void (*run)(Table&);
};

// `values`: at least one.
double median(std::vector<double> values);
// Nanoseconds that `work` takes on the wall.
double wall_ns(const std::function<void()>& work);
// Nanoseconds of CPU that the calling thread spends in `work`.
double cpu_ns(const std::function<void()>& work);

// Results of the contestants, by round.
class Rounds {
 public:
  explicit Rounds(size_t contestants) : values_(contestants) {}
  void add(size_t contestant, double value) { values_[contestant].push_back(value); }

  // The median of a contestant's rounds.
  double operator[](size_t contestant) const { return median(values_[contestant]); }
  // The median of each round's own ratio: a noisy round affects both contestants.
  double ratio(size_t contestant, size_t other) const;

 private:
  std::vector<std::vector<double>> values_;  // by contestant
};

// Runs each of `contestants` once per round, in turn, so that noise meets all of them.
Rounds interleave(int rounds, const std::vector<std::function<double()>>& contestants);

// Pins the calling thread, and threads and processes that it starts, to that CPU.
void pin(int cpu);
// Allows all CPUs again.
void unpin();

enum class Bound { kAtMost, kAtLeast };
Row judged(Row row, double value, Bound bound, double goal, const std::string& unit);

}  // namespace rocefs::bench
