// Report: the output of a simulation as a table, series.csv and a plot.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"
#include "tools/rocefs/sim/simulation.h"

namespace rocefs {

struct Report {
  const Config& config;
  uint64_t seed;
  std::vector<RunResult> runs = {};
  bool all_flows = false;  // the table has each flow of [flows], however many there are

  // File name, seed and hash of the configuration: part of every output.
  std::string origin() const;
  std::string title() const;

  // Most flows that have a line each in the table.
  static constexpr size_t kFewFlows = 50;
  // Table of one run: a line for each flow, or percentiles by size for many; then faults and
  // totals. Ends with a newline.
  std::string table(const RunResult& run) const;
  std::string series_csv() const;
  // Script for gnuplot, which writes plot.svg and plot.png into its working directory.
  std::string plot() const;
};

}  // namespace rocefs
