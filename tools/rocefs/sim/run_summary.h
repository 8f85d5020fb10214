// RunSummary: the figures of one run, of a variant and a seed, as summary.json has them. It has no
// CPU time and no path: the same run gives the same text on every machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "tools/rocefs/sim/figures.h"
#include "tools/rocefs/sim/simulation.h"

namespace rocefs {

using SummaryJson = nlohmann::ordered_json;

// Flows of a size that are done.
struct SizeSummary {
  uint64_t size = 0;  // largest; 0: all sizes
  uint64_t flows = 0;
  Figures fct_ns{}, slowdown{};
};

struct RunSummary {
  std::string variant;
  uint64_t seed = 1;
  std::string end;     // word for how it ended
  std::string reason;  // why it is partial; empty: it is complete
  TimeNs virtual_time = 0;
  std::vector<std::pair<std::string, uint64_t>> states;  // flows by state, those that occur
  std::vector<SizeSummary> sizes;                        // by size, and all sizes last
  // Share of flows whose slowdown is at most that, in order.
  std::vector<std::pair<double, double>> slowdown_cdf;
  SummaryJson rest;  // totals, drops, faults, warnings: shown as they are

  bool partial() const { return !reason.empty(); }
  // Whether all is as the file wants it: no flow has failed (an unreliable
  // one may lose messages), and every fault has fired.
  bool good() const;
  static RunSummary of(const RunResult& run, uint64_t seed);
  SummaryJson json() const;
  // Throws nlohmann's exceptions for other JSON.
  static RunSummary from(const SummaryJson& json);
};

// Text of summary.json: where the runs come from, and the runs.
SummaryJson summary_head(const Config& config);
std::string summary_text(const SummaryJson& json);

// Columns and lines of timing.csv, the one file that differs between two runs of the same seed.
std::string timing_csv_head();
std::string timing_csv(const RunResult& run, uint64_t seed);

}  // namespace rocefs
