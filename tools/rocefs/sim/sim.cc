#include "tools/rocefs/sim/sim.h"

#include <algorithm>
#include <cstdio>

#include "core/base/text.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/sim/output_files.h"
#include "tools/rocefs/sim/runner.h"
#include "tools/rocefs/sim/sim_options.h"

namespace rocefs {
namespace {

// Refuses a [plot] line that names an unknown sample.
std::optional<Failure> check_panels(const Config& config) {
  for (const Scenario::Line& panel : config.scenario.panels) {
    for (std::string_view name : split(panel.value, " \t")) {
      const auto& samples = config.scenario.samples;
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

}  // namespace

int simulate(int argc, char** argv) {
  Result<SimOptions> options = parse_sim_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "rocefs: %s\nTry 'rocefs sim --help'.\n", options.error().reason.c_str());
    return kUsageError;
  }
  if (options->help) {
    std::fputs(kSimUsage, stdout);
    return finish_output(0);
  }
  Result<Config> config = read_config(options->file);
  if (!config) return print_failure({kUsageError, config.error().reason});
  if (std::optional<Failure> failure = check_panels(*config)) return print_failure(*failure);
  if (Result<void> suits = check_clock(*config, ClockMode::kVirtual, 1); !suits) {
    return print_failure({kUsageError, suits.error().reason});
  }
  std::string out;
  if (!options->out.empty()) {
    Result<std::string> made = make_directory(options->out);
    if (!made) return print_failure({1, made.error().reason});
    out = *made;
  }
  StopRequest stop;
  uint64_t seed = options->seed.value_or(config->seed.value_or(1));
  return run_variants(*config, variants_of(config->scenario), {seed, out, options->flows}, stop);
}

}  // namespace rocefs
