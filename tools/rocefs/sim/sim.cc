#include "tools/rocefs/sim/sim.h"

#include <algorithm>
#include <cstdio>

#include "core/base/text.h"
#include "core/loop/io_choice.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/sim/inputs.h"
#include "tools/rocefs/sim/output_files.h"
#include "tools/rocefs/sim/runner.h"
#include "tools/rocefs/sim/sim_options.h"
#include "tools/rocefs/sim/stop_request.h"
#include "tools/rocefs/sim/sweep_merge.h"
#include "tools/rocefs/sim/sweep_plan.h"
#include "tools/rocefs/sim/sweep_runs.h"

namespace rocefs {
namespace {

// Refuses a [plot] without panels, and a panel that names no sample, or an unknown one.
std::optional<Failure> check_panels(const Config& config) {
  const Scenario& scenario = config.scenario;
  constexpr std::string_view kWanted = "AXIS = NAME [NAME …] is wanted";
  if (scenario.plot_line > 0 && scenario.panels.empty()) {
    return Failure{kUsageError,
                   fmt::format("{}:{}: [plot]: {}", config.name, scenario.plot_line, kWanted)};
  }
  for (const Scenario::Line& panel : scenario.panels) {
    std::vector<std::string_view> names = split(panel.value, " \t");
    if (names.empty()) {
      return Failure{kUsageError,
                     fmt::format("{}:{}: {}: {}", config.name, panel.line, panel.key, kWanted)};
    }
    for (std::string_view name : names) {
      const auto& samples = scenario.samples;
      bool there = std::any_of(samples.begin(), samples.end(),
                               [&](const Scenario::Line& sample) { return sample.key == name; });
      if (there) continue;
      return Failure{kUsageError,
                     fmt::format("{}:{}: no [sample] {}", config.name, panel.line, name)};
    }
  }
  return std::nullopt;
}

// Null stands for a scenario without variants.
std::vector<const Scenario::Variant*> variants_of(const Scenario& scenario) {
  std::vector<const Scenario::Variant*> variants;
  for (const Scenario::Variant& variant : scenario.variants) variants.push_back(&variant);
  if (variants.empty()) variants.push_back(nullptr);
  return variants;
}

// Checks what can be known before anything runs.
std::optional<Failure> check_config(const Config& config) {
  if (std::optional<Failure> failure = check_panels(config)) return failure;
  if (Result<void> suits = check_clock(config, ClockMode::kVirtual, 1); !suits) {
    return Failure{kUsageError, suits.error().reason};
  }
  return std::nullopt;
}

int run_sweep(const Config& config, const SimOptions& options, const std::string& out) {
  SweepPlan plan(config, options.seeds);
  if (Result<void> claimed = plan.claim(out); !claimed) {
    return print_failure({kUsageError, claimed.error().reason});
  }
  StopRequest stop;
  SweepEnd end = run_sweep(
      plan, {out, options.jobs, options.resume, options.flows, options.view, options.shard}, stop);
  if (end.mistaken || options.shard.count > 1) return end.status;
  return std::max(end.status, merge_sweep(plan, out));
}

int collect(const SimOptions& options, const std::string& out) {
  Result<SavedPlan> saved = read_plan(options.directories[0]);
  if (!saved) return print_failure({kUsageError, saved.error().reason});
  for (const std::string& directory : options.directories) {
    Result<SavedPlan> other = read_plan(directory);
    if (!other) return print_failure({kUsageError, other.error().reason});
    if (other->config.hash == saved->config.hash && other->seeds == saved->seeds) continue;
    return print_failure({kUsageError, fmt::format("{} and {} are of different sweeps",
                                                   options.directories[0], directory)});
  }
  SweepPlan plan(saved->config, saved->seeds);
  if (Result<void> claimed = plan.claim(out); !claimed) {
    return print_failure({kUsageError, claimed.error().reason});
  }
  Result<void> collected = collect_runs(plan, options.directories, out);
  if (!collected) return print_failure({1, collected.error().reason});
  return merge_sweep(plan, out);
}

int run_once(const Config& config, const SimOptions& options, const std::string& out) {
  StopRequest stop;
  RunnerOptions wanted;
  wanted.seed = options.seed.value_or(config.seed.value_or(1));
  wanted.out = out;
  wanted.all_flows = options.flows;
  wanted.view = options.view;
  wanted.threads = options.threads;
  wanted.cut_off = [&stop] { return std::string(stop.signal_name()); };
  return run_variants(config, variants_of(config.scenario), wanted);
}

}  // namespace

int simulate(int argc, char** argv) {
  Result<SimOptions> options = parse_sim_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "rocefs: %s\nTry 'rocefs sim --help'.\n", options.error().reason.c_str());
    return kUsageError;
  }
  if (options->version) return print_version();
  if (options->help) {
    std::fputs(kSimUsage, stdout);
    return finish_output(0);
  }
  if (auto wanted = wanted_io(); !wanted) {
    return print_failure({kUsageError, wanted.error().reason});
  }
  Config config;
  if (!options->collect) {
    Result<Config> read = read_config(options->file);
    if (!read) return print_failure({kUsageError, read.error().reason});
    config = std::move(*read);
    if (std::optional<Failure> failure = check_config(config)) return print_failure(*failure);
    add_inputs(config);
  }
  std::string out;
  if (!options->out.empty()) {
    Result<std::string> made = make_directory(options->out);
    if (!made) return print_failure({1, made.error().reason});
    out = *made;
  }
  if (options->collect) return collect(*options, out);
  if (options->seeds.empty()) {
    if (!out.empty() && read_plan(out)) {
      return print_failure(
          {1,
           fmt::format("{} has the runs of a sweep: another directory is wanted", options->out)});
    }
    return run_once(config, *options, out);
  }
  // Results name the file without its directory: they are the same on every machine.
  config.name = config.name.substr(config.name.rfind('/') + 1);
  return run_sweep(config, *options, out);
}

}  // namespace rocefs
