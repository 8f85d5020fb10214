#include "tools/mango-pccd/replay.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "pcc/algorithms/built_ins.h"
#include "pcc/card/calls_text.h"
#include "pcc/run/handle.h"
#include "pcc/run/offline.h"
#include "pcc/run/plugin.h"
#include "pcc/run/replay.h"

namespace rocefs {
namespace {

constexpr const char* kUsage =
    "mango-pccd replay TRACE.csv --algo FILE.so|NAME [--param NAME=VALUE]… [--seed N] "
    "[--device NAME] [--csv FILE]";
constexpr const char* kHelp =
    R"(usage: mango-pccd replay TRACE.csv --algo FILE.so|NAME [--param NAME=VALUE]…
                         [--seed N] [--device NAME] [--csv FILE]

Feeds recorded calls of an algorithm, which `mango-ctl rdma pcc trace --calls` writes, into an
algorithm, and compares its windows and rates with the recorded ones. No mount is needed.

  --algo FILE.so|NAME   a plugin, or a built-in algorithm
  --param NAME=VALUE    a parameter's value from the first call on
  --seed N              the mount's, if the algorithm draws random numbers
  --device NAME         the recorded one, if the algorithm draws random numbers
  --csv FILE            file for all decisions
  -h, --help            this text

The exit status is 0 if all decisions are the same, 1 if some differ, 2 if the recording or the
algorithm cannot be read.
)";
constexpr uint64_t kShown = 20;  // lines of a kind

struct Options {
  std::string trace, algorithm, csv, device;
  std::vector<ParameterChange> parameters;
  uint64_t seed = 0;
  bool help = false;
};

Result<uint64_t> parse_seed(std::string_view text) {
  uint64_t seed = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  return errorf(EINVAL, "--seed {}: a number is wanted", text);
}

Result<Options> parse_words(std::span<char* const> words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "-h" || word == "--help") {
      options.help = true;
      return options;
    }
    if (!word.starts_with("--")) {
      if (!options.trace.empty()) return errorf(EINVAL, "{}: one trace is wanted", word);
      options.trace = word;
      continue;
    }
    if (i + 1 == words.size()) return errorf(EINVAL, "{}: a value is wanted", word);
    const std::string value = words[++i];
    if (word == "--algo") {
      options.algorithm = value;
    } else if (word == "--csv") {
      options.csv = value;
    } else if (word == "--device") {
      options.device = value;
    } else if (word == "--seed") {
      if (Result<void> kept = keep("replay", parse_seed(value), options.seed); !kept)
        return kept.error();
    } else if (word == "--param") {
      const size_t sign = value.find('=');
      if (sign == value.npos) return errorf(EINVAL, "--param {}: NAME=VALUE is wanted", value);
      options.parameters.push_back({value.substr(0, sign), value.substr(sign + 1)});
    } else {
      return errorf(EINVAL, "{}: there is no such option", word);
    }
  }
  if (options.trace.empty() || options.algorithm.empty()) return Error{EINVAL, kUsage};
  return options;
}

// The algorithm, with its parameters set. A plugin stays loaded as long as the object.
class Candidate {
 public:
  Result<PccAlgorithm> load(const Options& options) {
    const std::string& name = options.algorithm;
    std::optional<unsigned> slot;
    if (name.ends_with(".so") || name.find('/') != name.npos) {
      Result<LibraryCopy> library = LibraryCopy::of(name);
      if (!library) return library.error();
      Result<std::unique_ptr<PccPlugin>> plugin = PccPlugin::load(handle_, *library);
      if (!plugin) return errorf(plugin.error().code, "{}: {}", name, plugin.error().reason);
      plugin_ = std::move(*plugin);
      slot = plugin_->slot();
    } else {
      add_built_ins(handle_.controller());
      slot = handle_.controller().find(name);
    }
    if (!slot) {
      return errorf(ENOENT, "{}: it is no built-in algorithm, and no file: FILE.so or a path",
                    name);
    }
    Result<void> set = handle_.controller().update(*slot, options.parameters);
    if (!set) return errorf(set.error().code, "--param: {}", set.error().reason);
    return *handle_.controller().algorithm(*slot);
  }

 private:
  PccHandle handle_{nullptr, 1};
  std::unique_ptr<PccPlugin> plugin_;
};

struct CloseStream {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Stream = std::unique_ptr<std::FILE, CloseStream>;

// Report of what has been replayed, on stdout and as CSV.
class Report {
 public:
  Result<void> open_csv(const std::string& path) {
    csv_.reset(std::fopen(path.c_str(), "we"));
    if (!csv_) return errorf(errno, "{}: {}", path, std::strerror(errno));
    path_ = path;
    fmt::print(csv_.get(),
               "time_ns,qp,generation,call,recorded_window,window,recorded_rate_bps,rate_bps,"
               "recorded_probe,probe\n");
    return {};
  }

  void leave_out(const rocefs_qp_call& call, uint32_t missing) {
    if (++left_out_ > kShown) return;
    if (missing == 1) {
      fmt::print("QP {} is left out: its recording begins with call {}\n", call.qpn, call.number);
    } else {
      fmt::print("QP {} is left out from call {} on: call {} is not in the recording\n", call.qpn,
                 call.number, missing);
    }
  }

  void add(const rocefs_qp_call& call, const PccOffline::Decision& now) {
    if (csv_) {
      fmt::print(csv_.get(), "{},{},{},{},{},{},{},{},{},{}\n", call.at_ns, call.qpn,
                 call.generation, call.number, call.new_window, now.window, call.rate_bps,
                 now.rate_bps, call.flags & ROCEFS_CALL_PROBE ? 1 : 0, now.probe ? 1 : 0);
    }
    if (now.window == call.new_window && now.rate_bps == call.rate_bps) return;
    if (++differ_ > kShown) return;
    fmt::print("{} ns QP {}: recorded window {} rate {}, replayed window {} rate {}\n", call.at_ns,
               call.qpn, call.new_window, call.rate_bps, now.window, now.rate_bps);
  }

  // The last lines, and the exit status.
  Result<int> finish(const PccReplay& replay) {
    if (csv_) {
      const bool written = std::fflush(csv_.get()) == 0 && !std::ferror(csv_.get());
      if (!written) return errorf(EIO, "{}: {}", path_, std::strerror(errno));
    }
    if (left_out_ > kShown) {
      fmt::print("and {} more are left out\n", left_out_ - kShown);
    }
    if (differ_ > kShown) fmt::print("and {} more calls differ\n", differ_ - kShown);
    if (replay.calls() == 0) {
      return Error{ENODATA, "there is no queue pair whose first call is recorded"};
    }
    fmt::print("{} calls of {} queue pairs: ", replay.calls(), replay.qps());
    if (differ_ == 0) {
      fmt::print("{} the same\n", replay.calls());
    } else {
      fmt::print("{} differ\n", differ_);
    }
    return differ_ == 0 ? 0 : 1;
  }

 private:
  Stream csv_;
  std::string path_;
  uint64_t differ_ = 0, left_out_ = 0;
};

Result<void> replay_line(const CallsLine& line, PccReplay& replay, Report& report) {
  if (const auto* event = std::get_if<rocefs_qp_event>(&line)) return replay.add(*event);
  const auto& call = std::get<rocefs_qp_call>(line);
  Result<PccReplay::Step> step = replay.add(call);
  if (!step) return step.error();
  if (step->replayed) report.add(call, step->decision);
  if (step->missing > 0) report.leave_out(call, step->missing);
  return {};
}

Result<void> replay_file(const std::string& path, PccReplay& replay, Report& report) {
  Stream file(std::fopen(path.c_str(), "re"));
  if (!file) return errorf(errno, "{}: {}", path, std::strerror(errno));
  CallsReader reader;
  char piece[65536];
  while (size_t size = std::fread(piece, 1, sizeof piece, file.get())) {
    reader.add({piece, size});
    for (;;) {
      Result<std::optional<CallsLine>> line = reader.next();
      if (!line) return errorf(line.error().code, "{}: {}", path, line.error().reason);
      if (!*line) break;
      Result<void> done = replay_line(**line, replay, report);
      if (!done) {
        return errorf(done.error().code, "{}: line {}: {}", path, reader.line(),
                      done.error().reason);
      }
    }
  }
  if (std::ferror(file.get())) return errorf(EIO, "{}: {}", path, std::strerror(errno));
  Result<void> whole = reader.end();
  return whole ? whole : errorf(whole.error().code, "{}: {}", path, whole.error().reason);
}

void log_line(mango_log_level_e level, std::string_view text) {
  if (level == MANGO_LOG_LEVEL_DEBUG) return;
  fmt::print(stderr, "{}\n", text);
}

Result<int> run(const Options& options) {
  if (options.help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  Candidate candidate;
  Result<PccAlgorithm> algorithm = candidate.load(options);
  if (!algorithm) return algorithm.error();
  // As the daemon seeds a device's card.
  const uint64_t seed =
      options.device.empty() ? options.seed : options.seed ^ fnv1a64(options.device);
  Result<std::unique_ptr<PccOffline>> offline =
      PccOffline::of(std::move(*algorithm), seed, log_line);
  if (!offline) return offline.error();
  PccReplay replay(**offline);
  Report report;
  if (!options.csv.empty()) {
    if (Result<void> opened = report.open_csv(options.csv); !opened) return opened.error();
  }
  if (Result<void> done = replay_file(options.trace, replay, report); !done) return done.error();
  return report.finish(replay);
}

}  // namespace

int replay(std::span<char* const> words) {
  Result<Options> options = parse_words(words);
  Result<int> status = options ? run(*options) : Result<int>(options.error());
  if (status) return *status;
  std::fflush(stdout);
  fmt::print(stderr, "mango-pccd: error: {}\n", status.error().reason);
  return 2;
}

}  // namespace rocefs
