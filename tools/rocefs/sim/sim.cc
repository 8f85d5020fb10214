#include "tools/rocefs/sim/sim.h"

#include <getopt.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/clock.h"
#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/sim/flows_csv.h"
#include "tools/rocefs/sim/report.h"

namespace rocefs {
namespace {

const char* const kSimUsage =
    R"(usage: rocefs sim [-o seed=N] [--out DIR] [--flows] FILE.ini

Runs the scenario of an ini file in virtual time, without a mount: its topology, knobs, flows,
timed stores and faults, see rocefs.ini(5). Prints a table of the flows; of more than 50, their FCT
and slowdown by size. Every output names the seed and the configuration; runs with the same seed and configuration give the same output.

  --out DIR      write flows.csv, series.csv and plot.gp to DIR, plot.svg and plot.png by gnuplot,
                 and with capture=yes packets.pcapng (packets-NAME.pcapng for each variant)
  --flows        print a line for each flow even if there are more than 50
  -o seed=N      seed of all random choices (the file's, or 1)
  -h, --help     this text

The exit status is 1 if a flow failed or a fault did not fire, 2 if the command line or the file is
wrong.

  rocefs sim tools/scenarios/incast.ini --out /tmp/incast
)";

struct SimOptions {
  bool help = false, flows = false;
  std::string file, out;
  std::optional<uint64_t> seed;
};

Result<void> take_option(SimOptions& options, std::string_view option) {
  if (option == "clock=virtual") return {};
  if (option.starts_with("clock="))
    return errorf(EINVAL, "{}: a simulation has a virtual clock", option);
  if (option.starts_with("seed=")) {
    Result<uint64_t> seed = kstrtou64(option.substr(5), 0);
    if (!seed) return errorf(EINVAL, "{}: a number is wanted", option);
    options.seed = *seed;
    return {};
  }
  return errorf(EINVAL, "unknown option {} after -o", option);
}

Result<SimOptions> parse_sim_options(int argc, char** argv) {
  SimOptions options;
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'},
                              {"out", required_argument, nullptr, 'O'},
                              {"flows", no_argument, nullptr, 'F'},
                              {nullptr, 0, nullptr, 0}};
  opterr = 0;
  optind = 1;
  for (int c; (c = getopt_long(argc, argv, ":ho:", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'h':
        options.help = true;
        return options;
      case 'o':
        for (std::string_view one : split(optarg, ",")) {
          if (Result<void> taken = take_option(options, one); !taken) return taken.error();
        }
        break;
      case 'O':
        options.out = optarg;
        break;
      case 'F':
        options.flows = true;
        break;
      case ':':
        return errorf(EINVAL, "{} requires a value", argv[optind - 1]);
      default:
        return errorf(EINVAL, "unknown option {}", argv[optind - 1]);
    }
  }
  if (argc - optind != 1) return Error{EINVAL, "one FILE.ini is wanted"};
  options.file = argv[optind];
  return options;
}

// Status line on a terminal, ten times a second at most.
class ProgressLine {
 public:
  ProgressLine(std::string what, size_t flows) : what_(std::move(what)), flows_(flows) {}
  ~ProgressLine() {
    if (shown_ > 0) std::fputs("\r\x1b[K", stderr);
  }
  void show(TimeNs now, size_t ended) {
    if (!terminal_ || monotonic_ns() - shown_ < 100 * kMillisecond) return;
    shown_ = monotonic_ns();
    std::fprintf(stderr, "\r\x1b[K%s: %.3f ms, %zu of %zu flows have ended", what_.c_str(),
                 static_cast<double>(now) / 1e6, ended, flows_);
  }

 private:
  const std::string what_;
  const size_t flows_;
  const bool terminal_ = ::isatty(STDERR_FILENO);
  TimeNs shown_ = 0;
};

Result<void> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return errorf(errno ? errno : EIO, "{}: {}", path, std::strerror(errno ? errno : EIO));
  return {};
}

// Runs gnuplot in the output directory. A failure is reported, but is no failure of the run.
void run_gnuplot(const std::string& directory) {
  char name[] = "gnuplot", script[] = "plot.gp";
  char* const arguments[] = {name, script, nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  int code = ::posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (code == 0 && ::waitpid(child, &status, 0) != child) status = -1;
  if (code != 0) {
    std::fprintf(stderr, "rocefs: no plot.svg: gnuplot: %s (Debian has it in gnuplot-nox)\n",
                 std::strerror(code));
  } else if (status != 0) {
    std::fprintf(stderr, "rocefs: no plot.svg: gnuplot failed on %s/plot.gp\n", directory.c_str());
  }
}

Result<void> write_outputs(const Report& report, const std::string& out) {
  if (!report.config.scenario.samples.empty()) {
    Result<void> written = write_file(out + "/series.csv", report.series_csv());
    if (!written) return written;
  }
  if (Result<void> written = write_file(out + "/plot.gp", report.plot()); !written) return written;
  run_gnuplot(out);
  return {};
}

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
  for (const FlowResult& flow : run.flows) {
    bool cut_off = run.failure && (flow.state == "running" || flow.state == "not started");
    if (flow.done() || cut_off || config.scenario.until) continue;
    std::fprintf(stderr, "rocefs: %s: flow %s of the run%s: %s\n", config.name.c_str(),
                 flow.spec.name.c_str(), of.c_str(), flow.state.c_str());
    good = false;
  }
  return good;
}

std::string capture_path(const Config& config, const std::string& out, const std::string& variant) {
  if (!config.scenario.capture || out.empty()) return {};
  return out + "/packets" + (variant.empty() ? "" : "-" + variant) + ".pcapng";
}

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

int run_all(const Config& config, uint64_t seed, const SimOptions& options,
            const std::string& out) {
  Report report{config, seed, {}, options.flows};
  std::optional<FlowsCsv> flows;
  if (!out.empty()) flows.emplace(out + "/flows.csv", report.origin());
  std::vector<const Scenario::Variant*> variants;
  for (const Scenario::Variant& variant : config.scenario.variants) variants.push_back(&variant);
  if (variants.empty()) variants.push_back(nullptr);
  int status = 0;
  for (const Scenario::Variant* variant : variants) {
    std::string name = variant ? variant->name : "";
    auto created = Simulation::create(config, variant, seed);
    if (auto* failure = std::get_if<Failure>(&created)) return print_failure(*failure);
    std::variant<RunResult, Failure> ended = Failure{};
    if (flows) flows->begin(name);
    {
      ProgressLine line(variant ? report.title() + ", " + name : report.title(),
                        config.scenario.flows.size());
      ended = std::get<0>(created)->run(
          {capture_path(config, out, name), flows ? &*flows : nullptr,
           [&](TimeNs now, size_t flows_ended) { line.show(now, flows_ended); }});
    }
    if (auto* failure = std::get_if<Failure>(&ended)) return print_failure(*failure);
    const RunResult& run = report.runs.emplace_back(std::move(std::get<RunResult>(ended)));
    std::printf("%s%s", report.runs.size() > 1 ? "\n" : "", report.table(run).c_str());
    if (int code = finish_output(0)) return code;
    std::fprintf(stderr, "%.3f s of CPU, %.2f M packet-hops per CPU second\n", run.cpu_seconds,
                 static_cast<double>(run.packet_hops) / run.cpu_seconds / 1e6);
    if (!complete(config, run)) status = std::max(status, 1);
    if (run.failure) status = std::max(status, print_failure(*run.failure));
  }
  if (flows) {
    bool partial = std::any_of(report.runs.begin(), report.runs.end(),
                               [](const RunResult& run) { return run.failure.has_value(); });
    Result<void> written = flows->finish(!partial);
    if (!written) status = std::max(status, print_failure({1, written.error().reason}));
  }
  if (!out.empty()) {
    Result<void> written = write_outputs(report, out);
    if (!written) return print_failure({1, written.error().reason});
  }
  return status;
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
    bool made = ::mkdir(options->out.c_str(), 0777) == 0 || errno == EEXIST;
    char* real = made ? ::realpath(options->out.c_str(), nullptr) : nullptr;
    if (!real) return print_failure({1, fmt::format("{}: {}", options->out, std::strerror(errno))});
    out = real;
    std::free(real);
  }
  return run_all(*config, options->seed.value_or(config->seed.value_or(1)), *options, out);
}

}  // namespace rocefs
