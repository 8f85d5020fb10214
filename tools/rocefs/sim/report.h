// What a simulation tells: a table for people, CSV for programs, a plot for both.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"
#include "tools/rocefs/sim/simulation.h"

namespace rocefs {

struct Report {
  const Config& config;
  uint64_t seed;
  std::vector<RunResult> runs;

  // FILE, seed and configuration, as every output says them.
  std::string origin() const;
  std::string title() const;

  // Of one run: a line for each flow, then its faults and totals. Ends with a newline.
  std::string table(const RunResult& run) const;
  std::string flows_csv() const;
  std::string series_csv() const;
  // For gnuplot, which writes plot.svg and plot.png where it runs.
  std::string plot() const;
};

}  // namespace rocefs
