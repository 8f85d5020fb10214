// Simulation: one run of a scenario in virtual time, without a mount: an Instance, and stores into
// its tree at their times.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config/config.h"
#include "rdma/traffic/flow.h"
#include "tools/rocefs/instance/instance.h"
#include "tools/rocefs/sim/fabric_totals.h"
#include "tools/rocefs/sim/flow_record.h"
#include "tools/rocefs/sim/flow_result.h"
#include "tools/rocefs/sim/flow_statistics.h"
#include "tools/rocefs/sim/ideal.h"
#include "tools/rocefs/sim/link_capacities.h"
#include "tools/rocefs/sim/load_run.h"
#include "tools/rocefs/sim/queue_totals.h"
#include "tools/rocefs/sim/sampler.h"
#include "tools/rocefs/sim/view_recording.h"

namespace rocefs {

struct FaultResult {
  std::string name, spec;
  int line = 0;
  uint64_t fired = 0;
};

// How a run ended: by itself, or cut off by its limit, a signal or a failure. A result that was cut
// off is partial.
enum class RunEnd : uint8_t { kFlowsDone, kUntil, kLimit, kSignal, kFailed };

struct RunResult {
  std::string variant;
  std::vector<FlowResult> flows;  // of [flows]
  FlowStatistics statistics;      // of all flows, loads' too
  LoadTotals loads;
  std::vector<FaultResult> faults;
  std::vector<std::string> not_due;  // lines of [at] that the run has ended before: FILE:LINE: WHY
  std::vector<Sample> samples;
  TimeNs end = 0;
  FabricTotals fabric;
  std::optional<AllQueues> queues;  // if they were measured
  uint64_t trace_hash = 0;
  uint64_t events = 0;  // that the engine has run
  double cpu_seconds = 0, wall_seconds = 0;
  size_t regions = 0;  // that threads ran; 0: the fabric was whole
  RunEnd end_kind = RunEnd::kFlowsDone;
  // Why the run is partial or did not begin; the rest of the result is what was known by then.
  std::optional<Failure> failure;
  std::vector<std::string> warnings;  // lines of dmesg, warnings and errors; the first kMaxWarnings
  uint64_t more_warnings = 0;         // not in `warnings`
  std::string recording;              // file of the recording; empty: there is none
  Result<void> recorded;              // why not, if one was wanted
  std::deque<std::string> log;        // last lines of dmesg
  static constexpr size_t kMaxWarnings = 100, kMaxLog = 20;

  // 0 for a run that took no time.
  double per_cpu_second(uint64_t count) const {
    return cpu_seconds > 0 ? static_cast<double>(count) / cpu_seconds : 0;
  }
};

struct RunProgress {
  TimeNs now = 0;
  uint64_t ended = 0, known = 0;  // flows; those that loads have started are known
  uint64_t expected = 0;          // flows of the whole run, as far as it can be told
};

// A failure before the run begins.
struct BuildFailure : Failure {
  bool of_variant = false;      // a trigger of [variant] was refused: others may run
  std::deque<std::string> log;  // last lines of dmesg
};

class Simulation final : private FlowSink {
 public:
  // Called between two steps of time.
  using Progress = std::function<void(const RunProgress& progress)>;

  // `config` outlives the simulation. Knobs of a variant are stored together with those of [knobs].
  // Checks the whole scenario, and what the other variants set; the reason of a failure is
  // FILE:LINE: WHY. With `threads`, the fabric runs in regions on so many; 0: as a whole.
  static std::variant<std::unique_ptr<Simulation>, BuildFailure> create(
      const Config& config, const Scenario::Variant* variant, uint64_t seed, size_t threads = 0);

  struct RunOptions {
    std::string capture;        // file for the packets; empty: they are not captured
    std::string view;           // file for a recording; empty: there is none
    std::string view_title;     // of the recording
    FlowSink* flows = nullptr;  // told of each flow; null: nobody is
    bool queues = false;        // measures the egress queues of switches
    Progress progress;          // may be empty
    // Looked at between two steps of time: a text ends the run, with that reason. May be empty.
    std::function<std::string()> cut_off = nullptr;
  };
  // Call once. Failures are in the result, with all that is known.
  RunResult run(const RunOptions& options);

 private:
  struct Store {
    TimeNs at;
    std::string path, value;  // without a path: knobs, which are stored together
    int line;
    bool of_at = false;  // a line of [at]
  };

  explicit Simulation(const Config& config) : config_(config), sampler_(config.scenario.interval) {}
  std::optional<Failure> build(const Scenario::Variant* variant, uint64_t seed, size_t threads);
  std::optional<Failure> check_regions() const;
  void finish_regions();
  std::optional<Failure> add_loads(const Scenario::Variant* variant, uint64_t seed);
  std::optional<Failure> apply_knobs(const Scenario::Variant* variant);
  void take_log(LogLevel level, std::string_view line);
  Failure failed(int line, const std::string& why) const;
  Result<void> add_flow(const Scenario::Line& line);
  Result<void> add_fault(const Scenario::Line& line);
  Result<void> add_store(const Scenario::Line& line);
  Result<void> add_sample(const Scenario::Line& line);
  template <class Add>
  std::optional<Failure> add_all(const std::vector<Scenario::Line>& lines, Add add);

  static std::string below_debug(std::string_view path);
  std::shared_ptr<File> writable(const std::string& path);  // null: there is none
  Result<void> store(const std::string& path, const std::string& value);
  Result<void> store_knobs(const std::string& value);
  Result<void> advance(TimeNs duration, bool until_idle = false);
  Result<void> wait(const std::function<void(Answer<void>)>& begin);
  void on_core(UniqueFunction<void()> work);
  std::optional<Failure> run_steps();
  std::optional<Failure> cut_off(TimeNs now);
  std::string left_over(TimeNs now) const;
  void take_sample(TimeNs now);
  void note_not_due(size_t next);
  void begin_view();
  Result<TimeNs> pass(TimeNs from, TimeNs to, bool until_idle);
  void keep_failure(const Result<void>& result);
  std::optional<Failure> store_due(TimeNs now, size_t& next);
  void note_started(TimeNs now);
  void note_ended();
  void look_at_flows();
  void take_result(FlowResult& flow);
  void flow_ended(const FlowRecord& flow) override;
  uint64_t flows_known() const { return result_.flows.size() + loads_->started(); }
  std::optional<std::string> text_of(const std::string& path);
  void collect();

  const Config& config_;
  // By part of the fabric, if queues are measured.
  std::map<const FabricResources*, QueueTimes> queue_times_;
  std::unique_ptr<Instance> instance_;
  std::optional<LinkCapacities> capacities_;
  std::optional<IdealTimes> ideal_;
  std::optional<LoadRun> loads_;
  std::vector<Store> stores_;  // by time
  Sampler sampler_;
  std::unique_ptr<ViewRecording> view_;  // null: none is wanted, or it has failed
  // Flows by their place in the result: those to come, the next one last, and those that run.
  std::vector<size_t> to_come_, running_;
  RunOptions options_;
  RunResult result_;
  std::string error_;                // first error in dmesg
  bool refused_by_variant_ = false;  // a setting of the variant was refused
};

}  // namespace rocefs
