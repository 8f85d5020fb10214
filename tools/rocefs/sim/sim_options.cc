#include "tools/rocefs/sim/sim_options.h"

#include <getopt.h>

#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/text.h"

namespace rocefs {

const char* const kSimUsage =
    R"(usage: rocefs sim [-o seed=N] [--threads N] [--out DIR [--view]] [--flows] FILE.ini
       rocefs sim --seeds LIST --out DIR [-j N] [--resume] [--shard I/N] [--flows] [--view]
                  FILE.ini
       rocefs sim --collect --out DIR SHARD...

Runs the scenario of an ini file in virtual time, without a mount: its topology, knobs, flows,
timed stores and faults, see rocefs.ini(5). Prints a table of the flows; of more than 50, their FCT
and slowdown by size. Every output names the seed and the configuration; runs with the same seed and
configuration give the same output. With --seeds each variant is run with each seed, in a directory
DIR/runs/VARIANT/seed-N, and the table has means with 95 % confidence intervals.

  --out DIR      write report.html, flows.csv, summary.json, links.csv, queues.csv, timing.csv,
                 series.csv and plot.gp to DIR, plot.svg and plot.png by gnuplot, and with capture=yes
                 packets.pcapng (packets-NAME.pcapng for each variant)
  --view         write a recording of each run to DIR/view.jsonl (view-NAME.jsonl), a look at
                 each interval of [sample], for 'rocefs view --replay' and report.html
  --flows        print a line for each flow even if there are more than 50
  --threads N    run parts of the fabric beside each other on N threads: loads whose starts follow
                 the clock, flows that write or read, without PCC, NPCC, faults and capture. The
                 results are the same for any N; without the option the events of one instant
                 have another order
  --seeds LIST   seeds of a sweep: 1..20, or 1,2,5
  -j, --jobs N   run N variants and seeds beside each other (1)
  --resume       run only what DIR does not have or has partially
  --shard I/N    run every N-th variant and seed, beginning with the I-th, without a table of means
  --collect      merge the directories of shards into DIR, as if one sweep had made it
  -o seed=N      seed of all random choices (the file's, or 1)
  -h, --help     this text
  -V, --version

A run that its limit=, SIGINT, SIGTERM, SIGHUP or an error cuts off keeps what is known by then,
marked as partial. The exit status is 1 if a run was cut off, a flow failed, a fault did not fire or
a file could not be written, 2 if the command line or the file is wrong.

Scenarios to begin with are in tools/scenarios of the sources, and installed in
share/doc/rocefs/examples/scenarios; there:

  rocefs sim incast.ini --out /tmp/incast
  rocefs sim --seeds 1..20 -j 8 --out /tmp/loss loss.ini
)";

namespace {

constexpr uint64_t kMaxJobs = 1024;
constexpr uint64_t kMaxThreads = 64;

Result<uint64_t> take_count(std::string_view option, std::string_view value, uint64_t most) {
  Result<uint64_t> count = kstrtou64(value, 10);
  if (count && *count > 0 && *count <= most) return count;
  return errorf(EINVAL, "{}: '{}': a number from 1 to {} is wanted", option, value, most);
}

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

Result<void> take_value(SimOptions& options, int c, std::string_view value) {
  switch (c) {
    case 'o':
      for (std::string_view one : split(value, ",")) {
        if (Result<void> taken = take_option(options, one); !taken) return taken;
      }
      return {};
    case 'S':
      return keep("--seeds", parse_seeds(value), options.seeds);
    case 'N':
      return keep("--shard", parse_shard(value), options.shard);
    case 'j': {
      Result<uint64_t> jobs = take_count("--jobs", value, kMaxJobs);
      if (!jobs) return jobs.error();
      options.jobs = static_cast<unsigned>(*jobs);
      return {};
    }
    case 'T': {
      Result<uint64_t> threads = take_count("--threads", value, kMaxThreads);
      if (!threads) return threads.error();
      options.threads = *threads;
      return {};
    }
    default:
      if (value.empty()) return Error{EINVAL, "--out names no directory"};
      options.out = value;
      return {};
  }
}

// Rules that span options.
Result<void> check_options(const SimOptions& options, size_t words) {
  bool sharded = options.shard.count > 1, sweep = !options.seeds.empty();
  if (options.collect) {
    if (sweep || sharded || options.resume || options.jobs > 1 || options.seed || options.flows ||
        options.view || options.threads > 0) {
      return Error{EINVAL, "--collect takes --out and directories alone"};
    }
    if (options.out.empty()) return Error{EINVAL, "--collect requires --out"};
    if (words == 0) return Error{EINVAL, "--collect: the directories of the shards are wanted"};
    return {};
  }
  if (!sweep && (sharded || options.resume || options.jobs > 1)) {
    return Error{EINVAL, "-j, --resume and --shard require --seeds"};
  }
  if (sweep && options.threads > 0)
    return Error{EINVAL, "--threads is for one run: -j for a sweep"};
  if (sweep && options.seed) return Error{EINVAL, "-o seed= and --seeds exclude each other"};
  if (sweep && options.out.empty()) return Error{EINVAL, "--seeds requires --out"};
  if (options.view && options.out.empty()) return Error{EINVAL, "--view requires --out"};
  if (words != 1) return Error{EINVAL, "one FILE.ini is wanted"};
  return {};
}

}  // namespace

Result<SimOptions> parse_sim_options(int argc, char** argv) {
  SimOptions options;
  constexpr option kLong[] = {
      {"version", no_argument, nullptr, 'V'},    {"help", no_argument, nullptr, 'h'},
      {"out", required_argument, nullptr, 'O'},  {"flows", no_argument, nullptr, 'F'},
      {"view", no_argument, nullptr, 'W'},       {"seeds", required_argument, nullptr, 'S'},
      {"jobs", required_argument, nullptr, 'j'}, {"threads", required_argument, nullptr, 'T'},
      {"resume", no_argument, nullptr, 'R'},     {"shard", required_argument, nullptr, 'N'},
      {"collect", no_argument, nullptr, 'C'},    {nullptr, 0, nullptr, 0}};
  opterr = 0;
  optind = 1;
  for (int c; (c = getopt_long(argc, argv, ":hVo:j:", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'h':
        options.help = true;
        return options;
      case 'V':
        options.version = true;
        return options;
      case 'F':
        options.flows = true;
        break;
      case 'W':
        options.view = true;
        break;
      case 'R':
        options.resume = true;
        break;
      case 'C':
        options.collect = true;
        break;
      case ':':
        return errorf(EINVAL, "{} requires a value", argv[optind - 1]);
      case '?':
        return errorf(EINVAL, "unknown option {}", argv[optind - 1]);
      default:
        if (Result<void> taken = take_value(options, c, optarg); !taken) return taken.error();
    }
  }
  std::vector<std::string> words(argv + optind, argv + argc);
  if (Result<void> fits = check_options(options, words.size()); !fits) return fits.error();
  if (options.collect) {
    options.directories = std::move(words);
  } else {
    options.file = words[0];
  }
  return options;
}

}  // namespace rocefs
