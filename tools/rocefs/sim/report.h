// Report: the output of a simulation as a table, CSV files and a plot.
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

  // File name, seed and hash of the configuration: part of every output.
  std::string origin() const;
  std::string title() const;

  // Table of one run: a line for each flow, then faults and totals. Ends with a newline.
  std::string table(const RunResult& run) const;
  std::string flows_csv() const;
  std::string series_csv() const;
  // Script for gnuplot, which writes plot.svg and plot.png into its working directory.
  std::string plot() const;
};

}  // namespace rocefs
