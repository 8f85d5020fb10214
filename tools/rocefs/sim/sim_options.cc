#include "tools/rocefs/sim/sim_options.h"

#include <getopt.h>

#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/text.h"

namespace rocefs {

const char* const kSimUsage =
    R"(usage: rocefs sim [-o seed=N] [--out DIR] [--flows] FILE.ini

Runs the scenario of an ini file in virtual time, without a mount: its topology, knobs, flows,
timed stores and faults, see rocefs.ini(5). Prints a table of the flows; of more than 50, their FCT
and slowdown by size. Every output names the seed and the configuration; runs with the same seed and configuration give the same output.

  --out DIR      write flows.csv, summary.json, links.csv, timing.csv, series.csv and plot.gp to DIR,
                 plot.svg and plot.png by gnuplot, and with capture=yes packets.pcapng
                 (packets-NAME.pcapng for each variant)
  --flows        print a line for each flow even if there are more than 50
  -o seed=N      seed of all random choices (the file's, or 1)
  -h, --help     this text

A run that its limit=, SIGINT, SIGTERM or an error cuts off keeps what is known by then, marked as
partial. The exit status is 1 if a run was cut off, a flow failed, a fault did not fire or a file
could not be written, 2 if the command line or the file is wrong.

  rocefs sim tools/scenarios/incast.ini --out /tmp/incast
)";

namespace {

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

}  // namespace

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

}  // namespace rocefs
