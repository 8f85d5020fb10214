// LoadRun: the [load] sections of a scenario in one run: checks them, starts their flows, and tells
// a FlowSink of each end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "rdma/workload/workload.h"
#include "tools/rocefs/sim/flow_record.h"
#include "tools/rocefs/sim/ideal.h"

namespace rocefs {

// Rounds of a load that is a collective.
struct LoadRounds {
  std::string load;
  uint64_t rounds = 0;
  TimeNs shortest = kNever, longest = 0, total = 0;
};

struct LoadTotals {
  std::vector<LoadRounds> rounds;
  uint64_t failed = 0;             // flows, and those that a reset removed
  std::string first_failure;       // NAME: WHY
  std::vector<std::string> stuck;  // loads that could not go on: NAME: WHY
};

class LoadRun final : private WorkloadListener {
 public:
  // `config`, `fabric` and `ideal` outlive the run.
  LoadRun(const Config& config, Fabric& fabric, IdealTimes& ideal)
      : config_(config), fabric_(fabric), ideal_(ideal) {}

  // Checks all sections, before the engine starts. The reason of a failure is LINE: WHY.
  struct Refusal {
    int line;
    std::string why;
  };
  // Keys of `variant` replace those of the sections; null: none. Checks those of the other
  // variants, too.
  std::optional<Refusal> build(const Scenario::Variant* variant, uint64_t seed);
  bool empty() const { return !workload_; }

  // Core thread. `sink` outlives the run. Work is outstanding until the loads are over, between two
  // flows, too.
  void begin(FlowSink& sink);
  // While the engine stands still:
  bool over() const { return !workload_ || workload_->over(); }
  uint64_t started() const { return workload_ ? workload_->started() : 0; }
  uint64_t running() const { return workload_ ? started() - workload_->ended() : 0; }
  // Names of loads with flows that start at a time.
  std::vector<std::string> to_come() const {
    return workload_ ? workload_->to_come() : std::vector<std::string>();
  }
  // Flows of the whole run, as far as it can be told at `now`.
  uint64_t expected(TimeNs now) const { return workload_ ? workload_->expected(now) : 0; }
  const LoadTotals& totals() const { return totals_; }
  // Core thread, at a reset: removes the flows that run.
  void remove_running();
  // Core thread: tells of the flows that still run, and stops them.
  void cut_off();

 private:
  std::optional<Refusal> read(const Scenario::Load& section, const Scenario::Variant* variant,
                              LoadSpec& spec) const;
  std::optional<Refusal> make(const Scenario::Variant* variant, uint64_t seed,
                              const std::vector<LoadHost>& hosts, std::vector<Load>& loads) const;
  void load_flow_ended(const LoadFlow& flow) override;
  void load_round_ended(const Load& load, const RoundTimes& round) override;
  void loads_over() override;
  void tell(const LoadFlow& flow, FlowRecord::State state);

  const Config& config_;
  Fabric& fabric_;
  IdealTimes& ideal_;
  FlowSink* sink_ = nullptr;
  LoadTotals totals_;
  bool counted_ = false;                // among the flows that are outstanding
  std::unique_ptr<Workload> workload_;  // null without a [load]
};

}  // namespace rocefs
