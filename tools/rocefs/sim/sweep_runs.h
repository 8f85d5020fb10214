// SweepRuns: runs of a sweep as processes beside each other, each in a directory of its own.
#pragma once

#include <string>

#include "tools/rocefs/sim/stop_request.h"
#include "tools/rocefs/sim/sweep_plan.h"

namespace rocefs {

struct SweepOptions {
  std::string out;                       // directory, which exists
  unsigned jobs = 1;                     // runs beside each other
  bool resume = false;                   // only the runs that are not there or partial
  bool all_flows = false, view = false;  // as RunnerOptions
  Shard shard;
};

struct SweepEnd {
  // Exit status: 0, 1 if a run failed or is partial, 2 for a mistake in the file.
  int status = 0;
  bool mistaken = false;  // a mistake that is not of one variant has ended the sweep
};

// Runs the shard's part of the plan; the directory is claimed.
SweepEnd run_sweep(const SweepPlan& plan, const SweepOptions& options, const StopRequest& stop);

}  // namespace rocefs
