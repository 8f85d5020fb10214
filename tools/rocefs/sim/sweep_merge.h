// Merge of a sweep's runs: the files and the table of the whole, from the directories of its runs.
// The result is the same wherever the runs were made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/rocefs/sim/run_summary.h"
#include "tools/rocefs/sim/sweep_plan.h"

namespace rocefs {

// Whether the run is there and need not be repeated: it has come to its end or its limit.
bool is_complete(const std::string& directory, const SweepRun& run);
// Whether the run has one for `rocefs view`.
bool has_recording(const std::string& directory, const SweepRun& run);

// Copies runs into `out` that are complete in one of `sources` and not in `out`; partial ones if
// there is no other. EEXIST if two directories have different results of one run.
Result<void> collect_runs(const SweepPlan& plan, const std::vector<std::string>& sources,
                          const std::string& out);

// Prints the table of the sweep in `out` and writes its files there. Returns the exit status: 0, 1
// if a run is not there, partial or failed, or a file cannot be written.
int merge_sweep(const SweepPlan& plan, const std::string& out);

}  // namespace rocefs
