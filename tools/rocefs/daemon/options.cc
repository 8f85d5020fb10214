#include "tools/rocefs/daemon/options.h"

#include <getopt.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "core/base/kstrto.h"

namespace rocefs {

const char* const kUsage =
    R"(usage: rocefs [-f] [-d] [-o OPTION[,OPTION…]] [SOURCE] MOUNTPOINT
       rocefs enter [-m MOUNTPOINT] [--] COMMAND [ARGUMENT…]
       rocefs host [-m MOUNTPOINT] NAME [COMMAND…]
       rocefs attach [-m MOUNTPOINT] NAME --netns PATH | --pid PID
       rocefs detach [-m MOUNTPOINT] NAME
       rocefs run [-o OPTION] [CONFIG] -- COMMAND [ARGUMENT…]
       rocefs wait [-m MOUNTPOINT] [--timeout TIME] PATH=VALUE…
       rocefs top [-m MOUNTPOINT] [--batch]
       rocefs view [-m MOUNTPOINT] [--listen ADDRESS:PORT]
       rocefs sim [-o seed=N] [--out DIR] FILE.ini

Mounts an emulated RoCE NIC as a sysfs-like tree. `fusermount3 -u MOUNTPOINT` or SIGTERM ends it.
`rocefs enter` runs a command that sees the mounted NICs in /sys; `rocefs host` runs one on a machine
around a NIC; `rocefs attach` gives such a machine's interfaces to a container; `rocefs run` mounts for
one command; `rocefs wait` waits until files have values; `rocefs top` shows rates of NICs, links, queues
and flows, and `rocefs view` all of it in a browser; `rocefs sim` runs a scenario in virtual time without
a mount. Each has --help.

  -f            stay in the foreground
  -d            print every FUSE request (stays in the foreground)
  -h, --help    this text
  -V, --version

options after -o:
  clock=real|virtual   real (the default): time passes by itself; virtual: by clock/advance alone
  dilation=S           with the real clock: time runs S times slower (1)
  seed=N               seed of all random choices (1); the same seed repeats a run
  cores=N              packets run on up to N threads, to which devices are divided (1)
  uplink=ADDRESS       join the kernel's network; mb_0 gets this address of the machine
  gso                  with uplink=: send and receive several packets per system call (GSO, GRO)
  config=FILE          devices, switches, links and start values of knobs: rocefs.ini(5)
  uid=N, gid=N         owner of the files, and user that runs PCC plugins (the mounting user)
  mode=OCTAL           mode of the files that can be written (0644)
  allow_pcc            let programs of all users set windows (libmango), not only root's and the owner's
  allow_other, ro, …   options of every FUSE file system

  rocefs /mnt && ls /mnt/class/infiniband
)";

namespace {

// A value without the backslashes that keep its commas from ending it.
std::string unescaped(const std::string& value) {
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) ++i;
    text += value[i];
  }
  return text;
}

Result<ClockMode> parse_clock_mode(std::string_view text) {
  if (text == "real") return ClockMode::kReal;
  if (text == "virtual") return ClockMode::kVirtual;
  return errorf(EINVAL, "clock={}: real or virtual is wanted", text);
}

Result<uint64_t> parse_dilation(std::string_view text) {
  Result<uint64_t> value = kstrtou64(text, 0);
  if (!value || *value < 1 || *value > 1'000'000) {
    return errorf(EINVAL, "dilation={}: 1 to 1000000 is wanted", text);
  }
  return value;
}

Result<size_t> parse_cores(std::string_view text) {
  constexpr uint64_t kMaxCores = 64;
  Result<uint64_t> value = kstrtou64(text, 0);
  if (!value || *value < 1 || *value > kMaxCores) {
    return errorf(EINVAL, "cores={}: 1 to {} is wanted", text, kMaxCores);
  }
  return size_t{*value};
}

Result<uint64_t> parse_number(std::string_view key, std::string_view text, uint64_t max) {
  Result<uint64_t> value = kstrtou64(text, 0);
  if (!value || *value > max) return errorf(EINVAL, "{}={}: a number is wanted", key, text);
  return value;
}

Result<mode_t> parse_mode(std::string_view text) {
  mode_t mode = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  bool good = code == std::errc() && end == text.data() + text.size();
  if (!good || mode & ~mode_t{0666} || (mode & 0600) != 0600) {
    return errorf(EINVAL, "mode={}: 600 to 666 is wanted, such as 664 for the group too", text);
  }
  return mode;
}

Result<void> take_text(const std::string& value, const char* wanted, std::string& out) {
  if (value.empty()) return Error{EINVAL, wanted};
  out = value;
  return {};
}

// Takes one option after -o: options of rocefs are parsed here, others are left to FUSE.
Result<void> take_option(Options& options, const std::string& option) {
  constexpr uint64_t kMaxId = 0xfffffffe;
  size_t equals = option.find('=');
  std::string key = option.substr(0, equals);
  std::string value = equals == option.npos ? "" : option.substr(equals + 1);
  auto keep = [](auto result, auto& out) -> Result<void> {
    if (!result) return result.error();
    out = *result;
    return {};
  };
  if (key == "clock") return keep(parse_clock_mode(value), options.clock);
  if (key == "dilation") return keep(parse_dilation(value), options.dilation);
  if (key == "seed") return keep(parse_number(key, value, ~uint64_t{0}), options.seed);
  if (key == "cores") return keep(parse_cores(value), options.cores);
  if (key == "config")
    return take_text(unescaped(value), "config=: a file is wanted", options.config);
  if (key == "uplink") return take_text(value, "uplink=: an address is wanted", options.uplink);
  if (option == "gso") {
    options.gso = true;
    return {};
  }
  if (option == "allow_pcc") {
    options.allow_pcc = true;
    return {};
  }
  auto id = [&](auto& out) -> Result<void> {
    Result<uint64_t> number = parse_number(key, value, kMaxId);
    if (!number) return number.error();
    out = static_cast<uid_t>(*number);
    return {};
  };
  if (key == "uid") return id(options.uid);
  if (key == "mode") return keep(parse_mode(value), options.mode);
  if (key == "gid") {
    Result<void> taken = id(options.gid);
    options.plugin_gid = options.gid;
    return taken;
  }
  if (key == "max_read" ||
      key == "subtype") {  // libfuse accepts them, but the mount would not work
    return errorf(EINVAL, "{}: not supported", option);
  }
  if (!option.empty()) options.mount_options.push_back(option);
  return {};
}

// Primary group of a user; nogroup for an unknown user.
gid_t group_of(uid_t uid) {
  constexpr gid_t kNogroup = 65534;
  const passwd* user = ::getpwuid(uid);
  return user ? user->pw_gid : kNogroup;
}

// End of the option that begins at `at`: a comma without a backslash before it, as in libfuse.
size_t end_of_option(const std::string& list, size_t at) {
  while (at < list.size() && list[at] != ',') at += list[at] == '\\' ? 2 : 1;
  return std::min(at, list.size());
}

Result<void> take_option_list(Options& options, const std::string& list) {
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = end_of_option(list, at);
    if (Result<void> taken = take_option(options, list.substr(at, comma - at)); !taken) {
      return taken;
    }
    at = comma + 1;
  }
  return {};
}

// Takes the arguments behind the options, and fails for options that exclude each other.
Result<Options> complete(Options options, int count, char** words) {
  if (count < 1) return Error{EINVAL, "a mount point is wanted"};
  if (count > 2) return errorf(EINVAL, "too many arguments: {}", words[2]);
  if (!*words[count - 1]) return Error{EINVAL, "a mount point is wanted, not an empty word"};
  if (count == 2 && *words[0]) options.source = words[0];
  options.mount_point = words[count - 1];
  if (!options.plugin_gid) {
    options.plugin_gid = options.uid == ::geteuid() ? options.gid : group_of(options.uid);
  }
  const std::vector<std::string>& given = options.mount_options;
  const bool others = std::find(given.begin(), given.end(), "allow_other") != given.end();
  if (options.uid != ::geteuid() && !others) {
    return errorf(EINVAL, "uid={} requires allow_other: only the user who mounts has access else",
                  options.uid);
  }
  if (!options.uplink.empty() && !options.config.empty()) {
    return Error{EINVAL, "uplink= and config= exclude each other: write [uplink] into the file"};
  }
  if (options.gso && options.uplink.empty()) {
    return Error{EINVAL, "gso requires uplink=; in a file write gso=on in [uplink]"};
  }
  return options;
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  options.uid = ::geteuid();
  options.gid = ::getegid();
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'V'},
                              {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, ":fdhVo:", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'f':
        options.foreground = true;
        break;
      case 'd':
        options.debug = options.foreground = true;
        break;
      case 'h':
        options.help = true;
        return options;
      case 'V':
        options.version = true;
        return options;
      case 'o':
        if (Result<void> taken = take_option_list(options, optarg); !taken) return taken.error();
        break;
      case ':':
        return errorf(EINVAL, "-{} requires a value", static_cast<char>(optopt));
      default:
        if (optopt) return errorf(EINVAL, "unknown option -{}", static_cast<char>(optopt));
        return errorf(EINVAL, "unknown option {}", argv[optind - 1]);
    }
  }
  return complete(std::move(options), argc - optind, argv + optind);
}

}  // namespace rocefs
