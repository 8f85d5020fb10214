#include "tools/rocefs-top/options.h"

#include <fmt/ranges.h>
#include <getopt.h>

#include <cerrno>
#include <vector>

#include "core/base/kstrto.h"
#include "tools/rocefs-top/delay.h"

namespace rocefs::top {

const char* const kTopUsage =
    R"(usage: rocefs top [-m MOUNTPOINT] [-d DELAY] [--screen SCREEN] [--sort COLUMN]
       rocefs top --batch [-n N] [--csv] [OPTION…]

Shows what the NICs, links, switch queues and flows of a mount do, in a terminal. F1 tells the keys.
Rates are per second of the mount's clock; where virtual time does not pass, counts are shown.

  -m MOUNTPOINT      mount that is looked at ($ROCEFS_MOUNT, or the only mounted rocefs)
  -d, --delay DELAY  real time between two looks: 0.5, 500ms or 5s (1); 50ms to 3600s
  --screen SCREEN    devices (the default), links, queues or flows
  --sort COLUMN      the column that the rows are sorted by; -COLUMN: the other way round
  -b, --batch        print tables, without a terminal
  -n, --count N      with --batch: end after N tables; without, SIGINT ends it
  --csv              with --batch: as CSV (RFC 4180), in plain units, counts beside rates
  -h, --help         this text
  -V, --version

Each table has the rates between two looks. The exit status is 0, 1 when the mount has ended or there
is no terminal, and 2 if the command line is wrong.

  rocefs top
  rocefs top --batch -n 1 --screen queues --sort octets
)";

namespace {

std::string column_names(Screen screen) {
  std::vector<std::string_view> names;
  for (const Column& column : columns_of(screen)) names.push_back(column.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Order> parse_order(Screen screen, std::string_view text) {
  const bool other_way = text.starts_with('-');
  if (other_way) text.remove_prefix(1);
  const std::optional<size_t> column = column_named(screen, text);
  if (!column) {
    return errorf(EINVAL, "--sort {}: {} has {}", quoted(text), name_of(screen),
                  column_names(screen));
  }
  Order order = order_by(screen, *column);
  if (other_way) order.descending = !order.descending;
  return order;
}

Result<uint64_t> parse_count(std::string_view text) {
  Result<uint64_t> count = kstrtou64(text, 10);
  if (!count || *count == 0)
    return errorf(EINVAL, "-n {}: a number of tables is wanted", quoted(text));
  return count;
}

// Takes an option with a value. EINVAL, ERANGE.
Result<void> take_value(int option, const char* value, TopOptions& options, std::string& sort) {
  if (option == 'm') {
    if (!*value) return Error{EINVAL, "-m requires a mount point"};
    options.mount_point = value;
  } else if (option == 'd') {
    Result<TimeNs> delay = parse_delay(value);
    return keep("-d", delay, options.delay);
  } else if (option == 'n') {
    Result<uint64_t> count = parse_count(value);
    if (!count) return count.error();
    options.count = *count;
  } else if (option == 'S') {
    const std::optional<Screen> screen = screen_named(value);
    if (!screen) {
      return errorf(EINVAL, "--screen {}: devices, links, queues or flows is wanted",
                    quoted(value));
    }
    options.screen = *screen;
  } else {
    sort = value;
    if (sort.empty()) return Error{EINVAL, "--sort requires a column"};
  }
  return {};
}

}  // namespace

Result<TopOptions> parse_top(int argc, char** argv) {
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'V'},
                              {"batch", no_argument, nullptr, 'b'},
                              {"csv", no_argument, nullptr, 'C'},
                              {"delay", required_argument, nullptr, 'd'},
                              {"count", required_argument, nullptr, 'n'},
                              {"screen", required_argument, nullptr, 'S'},
                              {"sort", required_argument, nullptr, 'O'},
                              {nullptr, 0, nullptr, 0}};
  TopOptions options;
  std::string sort;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":m:d:n:bhV", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'h':
        options.help = true;
        return options;
      case 'V':
        options.version = true;
        return options;
      case 'b':
        options.batch = true;
        break;
      case 'C':
        options.csv = true;
        break;
      case ':':
      case '?':
        return errorf(EINVAL, "{} {}", quoted(argv[optind - 1]),
                      c == ':' ? "requires a value" : "is no option");
      default:
        if (Result<void> taken = take_value(c, optarg, options, sort); !taken) {
          return taken.error();
        }
    }
  }
  if (argv[optind]) return errorf(EINVAL, "{} is no option", quoted(argv[optind]));
  if (!options.batch && (options.csv || options.count > 0)) {
    return errorf(EINVAL, "{} is for --batch", options.csv ? "--csv" : "-n");
  }
  if (!sort.empty()) {
    Result<Order> order = parse_order(options.screen, sort);
    if (!order) return order.error();
    options.order = *order;
  }
  return options;
}

}  // namespace rocefs::top
