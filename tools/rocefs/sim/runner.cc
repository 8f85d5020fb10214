#include "tools/rocefs/sim/runner.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/sim/flows_csv.h"
#include "tools/rocefs/sim/html_report.h"
#include "tools/rocefs/sim/output_files.h"
#include "tools/rocefs/sim/progress_line.h"
#include "tools/rocefs/sim/run_summary.h"
#include "tools/rocefs/sim/stale_files.h"

namespace rocefs {
namespace {

// Reports faults that did not fire and flows that failed. True if there are none.
bool complete(const Config& config, const RunResult& run) {
  bool good = true;
  std::string of = run.variant.empty() ? "" : " of " + run.variant;
  for (const FaultResult& fault : run.faults) {
    if (fault.fired > 0) continue;
    std::fprintf(stderr, "rocefs: %s:%d: fault %s has not fired in the run%s\n",
                 config.name.c_str(), fault.line, fault.name.c_str(), of.c_str());
    good = false;
  }
  for (const std::string& line : run.not_due) {
    std::fprintf(stderr, "rocefs: %s%s\n", line.c_str(),
                 of.empty() ? "" : (", in the run" + of).c_str());
  }
  for (const FlowResult& flow : run.flows) {
    bool cut_off = run.failure && (flow.state == "running" || flow.state == "not started");
    if (flow.done() || flow.lost() || cut_off || config.scenario.until) continue;
    std::fprintf(stderr, "rocefs: %s: flow %s of the run%s: %s\n", config.name.c_str(),
                 flow.spec.name.c_str(), of.c_str(), flow.state.c_str());
    good = false;
  }
  if (run.loads.failed > 0 && !config.scenario.until) {
    std::fprintf(
        stderr, "rocefs: %s: %" PRIu64 " flows of loads of the run%s failed, at first %s\n",
        config.name.c_str(), run.loads.failed, of.c_str(), run.loads.first_failure.c_str());
    good = false;
  }
  for (const std::string& stuck : run.loads.stuck) {
    std::fprintf(stderr, "rocefs: %s: load %s (the run%s)\n", config.name.c_str(), stuck.c_str(),
                 of.c_str());
    good = false;
  }
  return good;
}

// Prints why a run failed, and the last lines of its log.
int print_run_failure(const RunResult& run) {
  int status = print_failure(*run.failure);
  if (run.end_kind != RunEnd::kFailed) return status;
  for (const std::string& line : run.log) std::fprintf(stderr, "  %s\n", line.c_str());
  return status;
}

class Runner {
 public:
  Runner(const Config& config, const RunnerOptions& options)
      : config_(config), options_(options), report_{config, options.seed, {}, options.all_flows} {}

  int run_all(const std::vector<const Scenario::Variant*>& variants) {
    bool refused = false;
    for (const Scenario::Variant* variant : variants) {
      // The reason that refused one would refuse the others: print_failure() has told it.
      if (!refused && options_.cut_off && !options_.cut_off().empty()) {
        not_run(variant);
      } else if (refused || !run(variant)) {
        refused = true;
        not_run_.push_back(variant ? variant->name : "the scenario");
      }
    }
    if (!options_.out.empty() && !report_.runs.empty()) write_files();
    return status_;
  }

 private:
  void note(int status) { status_ = std::max(status_, status); }
  void note(const Result<void>& written) {
    if (written) return;
    failed_to_write_ = true;
    note(print_failure({1, written.error().reason}));
  }

  // False if the others would fail as well.
  bool run(const Scenario::Variant* variant) {
    std::string name = variant ? variant->name : "";
    auto created = Simulation::create(config_, variant, options_.seed, options_.threads);
    if (auto* failure = std::get_if<BuildFailure>(&created)) {
      if (!failure->of_variant) {
        note(print_failure(*failure));
        return false;
      }
      begin_flows(name);
      RunResult failed;
      failed.variant = name;
      failed.end_kind = RunEnd::kFailed;
      failed.failure = *failure;
      failed.log = failure->log;
      take(std::move(failed));
      return true;
    }
    begin_flows(name);
    take(run(*std::get<0>(created), name));
    return true;
  }

  // Opens flows.csv for the first run: a mistake in the file leaves that of an earlier one.
  void begin_flows(const std::string& variant) {
    if (options_.out.empty()) return;
    if (!flows_) flows_.emplace(options_.out + "/flows.csv", report_.origin());
    flows_->begin(variant);
  }

  RunResult run(Simulation& simulation, const std::string& variant) {
    std::string title = report_.title() + (variant.empty() ? "" : ", " + variant);
    ProgressLine line(title, config_.scenario.until);
    Simulation::RunOptions wanted;
    if (config_.scenario.capture && !options_.out.empty()) {
      wanted.capture = options_.out + "/" + packets_name(variant);
    }
    if (options_.view) {
      wanted.view = view_path(options_.out, variant);
      wanted.view_title = title;
    }
    wanted.flows = flows_ ? &*flows_ : nullptr;
    wanted.queues = !options_.out.empty();
    wanted.progress = [&](const RunProgress& progress) { line.show(progress); };
    wanted.cut_off = options_.cut_off;
    return simulation.run(wanted);
  }

  void take(RunResult result) {
    const RunResult& run = report_.runs.emplace_back(std::move(result));
    std::printf("%s%s", report_.runs.size() > 1 ? "\n" : "", report_.table(run).c_str());
    note(finish_output(0));
    if (run.cpu_seconds > 0 && !options_.part) {
      std::string regions;
      if (run.regions > 0) {
        regions = fmt::format("; {} regions on {} threads, {:.3f} s", run.regions, options_.threads,
                              run.wall_seconds);
      }
      std::fprintf(stderr, "%.3f s of CPU, %.2f M packet-hops and %.2f M events per CPU second%s\n",
                   run.cpu_seconds, run.per_cpu_second(run.fabric.packet_hops) / 1e6,
                   run.per_cpu_second(run.events) / 1e6, regions.c_str());
    }
    if (!complete(config_, run)) note(1);
    if (run.failure) note(print_run_failure(run));
    note(run.recorded);
  }

  void not_run(const Scenario::Variant* variant) {
    std::fprintf(stderr, "rocefs: %s: %s was not run\n", config_.name.c_str(),
                 variant ? variant->name.c_str() : "the scenario");
    not_run_.push_back(variant ? variant->name : "the scenario");
    note(1);
  }

  bool partial() const {
    return !not_run_.empty() ||
           std::any_of(report_.runs.begin(), report_.runs.end(),
                       [](const RunResult& run) { return run.failure.has_value(); });
  }

  std::string summary() const {
    SummaryJson json = summary_head(config_);
    json["partial"] = partial();
    json["runs"] = SummaryJson::array();
    for (const RunResult& run : report_.runs) {
      json["runs"].push_back(RunSummary::of(run, options_.seed).json());
    }
    return summary_text(json);
  }
  std::string page() const {
    std::vector<RunSummary> runs;
    HtmlReport page{report_.title(), report_.origin(), not_run_, {config_, runs}};
    for (const RunResult& run : report_.runs) {
      runs.push_back(RunSummary::of(run, options_.seed));
      page.input.series.push_back({run.variant, options_.seed, run.samples, "series.csv"});
      if (run.recording.empty()) continue;
      page.input.recordings.push_back(
          {run.variant, run.recording, run.recording.substr(run.recording.rfind('/') + 1)});
    }
    return page.text();
  }
  std::string links() const {
    std::string text = "# " + report_.origin() + "\n" + links_csv_head();
    for (const RunResult& run : report_.runs) text += links_csv(run.variant, run.fabric);
    return text;
  }
  std::string queues() const {
    std::string text = "# " + report_.origin() + "\n" + queues_csv_head();
    for (const RunResult& run : report_.runs) {
      if (run.queues) text += queues_csv(run.variant, *run.queues);
    }
    return text;
  }
  std::string timing() const {
    std::string text = "# " + report_.origin() + "\n" + timing_csv_head();
    for (const RunResult& run : report_.runs) text += timing_csv(run, options_.seed);
    return text;
  }

  // Names of files that are there or will be, but for the plot's, which gnuplot may not write.
  std::vector<std::string> written() const {
    std::vector<std::string> names{"flows.csv", "links.csv", "queues.csv", "plot.gp"};
    if (!config_.scenario.samples.empty()) names.push_back("series.csv");
    for (const RunResult& run : report_.runs) {
      if (config_.scenario.capture) names.push_back(packets_name(run.variant));
      if (!run.recording.empty()) names.push_back(view_name(run.variant));
    }
    return names;
  }

  // Goes on after a file that cannot be written: the others may go elsewhere. A run of a sweep has
  // its summary last, and only if it has all other files: without it the run is made again.
  void write_files() {
    remove_stale(options_.out, files_of_run(options_.out), written());
    note(flows_->finish(!partial()));
    note(write_file(options_.out + "/links.csv", links()));
    note(write_file(options_.out + "/queues.csv", queues()));
    note(write_file(options_.out + "/timing.csv", timing()));
    if (!config_.scenario.samples.empty()) {
      note(write_file(options_.out + "/series.csv", report_.series_csv()));
    }
    if (!failed_to_write_ || !options_.part)
      note(write_file(options_.out + "/summary.json", summary()));
    if (options_.part) return;
    note(write_file(options_.out + "/report.html", page()));
    Result<void> script = write_file(options_.out + "/plot.gp", report_.plot());
    note(script);
    if (script) run_gnuplot(options_.out);
  }

  const Config& config_;
  const RunnerOptions& options_;
  Report report_;
  std::optional<FlowsCsv> flows_;
  std::vector<std::string> not_run_;
  bool failed_to_write_ = false;
  int status_ = 0;
};

}  // namespace

std::string view_path(const std::string& out, const std::string& variant) {
  return out + "/" + view_name(variant);
}

int run_variants(const Config& config, const std::vector<const Scenario::Variant*>& variants,
                 const RunnerOptions& options) {
  return Runner(config, options).run_all(variants);
}

}  // namespace rocefs
