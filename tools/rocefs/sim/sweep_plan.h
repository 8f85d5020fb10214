// SweepPlan: the runs of a sweep, one for each variant and seed, and their places in its directory.
//
//   DIR/sweep.json                   the plan: file, seeds, the file's text, a hash of its inputs
//   DIR/runs/VARIANT/seed-N/         a run that has ended; runs/seed-N/ without variants
//   DIR/runs/VARIANT/seed-N.part/    a run that has not
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "tools/rocefs/sim/seed_list.h"

namespace rocefs {

struct SweepRun {
  const Scenario::Variant* variant = nullptr;  // null: the scenario has none
  uint64_t seed = 1;

  std::string variant_name() const { return variant ? variant->name : std::string(); }
  std::string name() const;       // for people
  std::string directory() const;  // below the sweep's
};

class SweepPlan {
 public:
  // `config` outlives the plan.
  SweepPlan(const Config& config, std::vector<uint64_t> seeds)
      : config_(config), seeds_(std::move(seeds)) {}

  const Config& config() const { return config_; }
  const std::vector<uint64_t>& seeds() const { return seeds_; }
  // All runs, variant by variant, or the shard's: every N-th.
  std::vector<SweepRun> runs(Shard shard = {}) const;
  // File, seeds and configuration, for heads of files.
  std::string origin() const;

  // Writes sweep.json unless the directory has it already. EEXIST if it has that of another file or
  // of another configuration, and a run of it.
  Result<void> claim(const std::string& directory) const;

 private:
  const Config& config_;
  const std::vector<uint64_t> seeds_;
};

// Content of DIR/sweep.json.
struct SavedPlan {
  Config config;
  std::vector<uint64_t> seeds;
};
// ENOENT without one, EINVAL for other content; the reason names the file.
Result<SavedPlan> read_plan(const std::string& directory);

}  // namespace rocefs
