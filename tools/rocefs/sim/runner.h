// Runner: runs the variants of a scenario one after the other with one seed, prints their tables
// and writes their files. What is known is printed and written, whatever ends a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "tools/rocefs/sim/report.h"

namespace rocefs {

struct RunnerOptions {
  uint64_t seed = 1;
  std::string out;         // directory, which exists; empty: no files are written
  bool view = false;       // a recording of each run (view_path()) in `out`
  bool all_flows = false;  // a line for each flow in the table
  size_t threads = 0;      // of one run, in regions; 0: the fabric is whole
  bool part = false;       // one run of a sweep: without plots, and without CPU time on stderr
  // Name of a signal that has arrived, else empty.
  std::function<std::string()> cut_off = nullptr;
};

// Recording of a run, in a directory.
std::string view_path(const std::string& directory, const std::string& variant);

// Runs `variants`, of which null is a run without one. Returns the exit status: 0, 1 if a run is
// partial or failed or a file cannot be written, 2 for a mistake in the file.
int run_variants(const Config& config, const std::vector<const Scenario::Variant*>& variants,
                 const RunnerOptions& options);

}  // namespace rocefs
