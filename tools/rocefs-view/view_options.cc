#include "tools/rocefs-view/view_options.h"

#include <arpa/inet.h>
#include <getopt.h>

#include <cerrno>
#include <cstdlib>

#include "core/base/kstrto.h"
#include "core/base/units.h"

namespace rocefs {

const char* const kViewUsage =
    R"(usage: rocefs view [-m MOUNTPOINT] [--listen ADDRESS:PORT] [--interval TIME] [--read-only]
                   [--record FILE]
       rocefs view --replay FILE [--listen ADDRESS:PORT]

Serves a page that shows a mounted rocefs in a browser: its switches and cables with their load,
queues and pauses, its NICs, flows and log, any file over time, and every knob to be stored. The
page needs no network but this server.

  -m MOUNTPOINT           mount to show ($ROCEFS_MOUNT, or the only mounted rocefs)
  --listen ADDRESS:PORT   where it listens (127.0.0.1:8470); port 0 is a free one
  --interval TIME         time between two looks at the mount, 50ms to 10s (200ms)
  --read-only             nobody may store
  --record FILE           writes all that the page is told into FILE, page or no page
  --replay FILE           shows a recording instead of a mount
  -h, --help              this text
  -V, --version

The line that it prints has the page's address. The token at its end allows to store: without it the
page is to look at. Whoever reaches the port may look, with the rights of the user who started it.
)";

namespace {

Result<void> take_listen(const std::string& text, ViewOptions& options) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return errorf(EINVAL, "--listen {}: ADDRESS:PORT is wanted", text);
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  in6_addr binary;
  if (::inet_pton(AF_INET, address.c_str(), &binary) != 1 &&
      ::inet_pton(AF_INET6, address.c_str(), &binary) != 1) {
    return errorf(EINVAL, "--listen {}: '{}' is no address", text, address);
  }
  const std::string port = text.substr(colon + 1);
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") == port.npos;
  if (!digits || port.size() > 5 || std::atoi(port.c_str()) > UINT16_MAX) {
    return errorf(EINVAL, "--listen {}: '{}' is no port", text, port);
  }
  options.address = address;
  options.port = static_cast<uint16_t>(std::atoi(port.c_str()));
  return {};
}

Result<void> take_interval(const std::string& text, ViewOptions& options) {
  Result<TimeNs> interval = parse_duration(text);
  if (!interval) return errorf(EINVAL, "--interval {}: {}", text, interval.error().reason);
  if (*interval < 50 * kMillisecond || *interval > 10 * kSecond) {
    return errorf(ERANGE, "--interval {}: outside 50ms to 10s", text);
  }
  options.interval = *interval;
  return {};
}

}  // namespace

Result<ViewOptions> parse_view(int argc, char** argv) {
  ViewOptions options;
  constexpr option kLong[] = {
      {"help", no_argument, nullptr, 'h'},         {"version", no_argument, nullptr, 'V'},
      {"listen", required_argument, nullptr, 'l'}, {"interval", required_argument, nullptr, 'i'},
      {"read-only", no_argument, nullptr, 'r'},    {"record", required_argument, nullptr, 'c'},
      {"replay", required_argument, nullptr, 'p'}, {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int c; (c = ::getopt_long(argc, argv, ":m:hV", kLong, nullptr)) != -1;) {
    Result<void> taken;
    if (c == 'h') {
      options.help = true;
    } else if (c == 'V') {
      options.version = true;
    } else if (c == 'm') {
      options.mount_point = optarg;
    } else if (c == 'l') {
      taken = take_listen(optarg, options);
    } else if (c == 'i') {
      taken = take_interval(optarg, options);
    } else if (c == 'r') {
      options.read_only = true;
    } else if (c == 'c' || c == 'p') {
      if (!*optarg) return errorf(EINVAL, "{} requires a file", argv[optind - 1]);
      (c == 'c' ? options.record : options.replay) = optarg;
    } else {
      taken =
          errorf(EINVAL, "{} {}", argv[optind - 1], c == ':' ? "requires a value" : "is no option");
    }
    if (!taken) return taken.error();
  }
  if (argv[optind]) return errorf(EINVAL, "'{}' is too much", argv[optind]);
  if (!options.replay.empty() && !(options.record + options.mount_point).empty()) {
    return Error{EINVAL, "--replay shows a file: no -m and no --record with it"};
  }
  return options;
}

}  // namespace rocefs
