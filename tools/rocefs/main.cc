// rocefs: mounts an emulated RoCE NIC, runs a command with one, or a scenario without a mount.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/process/open_files.h"
#include "core/process/standard_files.h"
#include "rdma/uplink/interface.h"
#include "rdma/wire/ip_text.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/limits.h"
#include "tools/rocefs/command/status_pipe.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/command/words.h"
#include "tools/rocefs/daemon/daemon.h"
#include "tools/rocefs/daemon/options.h"
#include "tools/rocefs/daemon/service_manager.h"
#include "tools/rocefs/daemon/supervisor.h"
#include "tools/rocefs/enter/enter.h"
#include "tools/rocefs/host/attach.h"
#include "tools/rocefs/host/host.h"
#include "tools/rocefs/rig/beside.h"
#include "tools/rocefs/rig/run.h"
#include "tools/rocefs/rig/wait.h"
#include "tools/rocefs/sim/sim.h"

namespace {

using namespace rocefs;

// Continues in a child in the background. The parent waits for the child's status line, so that
// errors reach the terminal and the mount is ready when the command returns; it reports the child
// to the service manager, which knows the parent alone. Returns the child's end of the pipe.
int fork_to_background(const ServiceManager& manager) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    ::close(ends[0]);
    ::setsid();
    return ends[1];
  }
  ::close(ends[1]);
  char line[PIPE_BUF];
  if (ssize_t size = ::read(ends[0], line, sizeof line); size > 0) {
    manager.ready(child, {line, static_cast<size_t>(size)});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

void close_terminal() {
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  ::close(null);
}

void block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // ignored, it would take the workers' exit statuses away
}

// Closes what the caller has left open beyond the standard files: a mount that outlives it would
// hold its locks, and the ends of its pipes.
void close_inherited(int status_pipe) {
  const auto kept = static_cast<unsigned>(status_pipe);
  if (kept > STDERR_FILENO + 1) ::close_range(STDERR_FILENO + 1, kept - 1, 0);
  ::close_range(kept + 1, ~0u, 0);
}

// Runs a worker until the mount ends. `keeps_terminal`: nobody waits for the mount alone.
int work(const Options& options, bool keeps_terminal, const Config& config, Journal& journal,
         WorkerLink& link, TimeNs alive_every) {
  bool first = link.descriptor() < 0;
  Result<Invalidator> invalidator = Invalidator::start();
  if (!invalidator) return print_failure({1, invalidator.error().reason});
  auto created = Daemon::create(
      options, config,
      {journal, link.descriptor(), link.take_listener(), std::move(*invalidator), link.take_kept(),
       [&link](const std::string& name, int descriptor) { link.keep(name, descriptor); }});
  if (auto* failed = std::get_if<Failure>(&created)) return print_failure(*failed);
  auto& daemon = std::get<0>(created);
  if (first) (void)!::chdir("/");
  DaemonEvents events;
  events.ready = [&] {
    if (first) {
      std::printf("rocefs: %s\n", daemon->summary().c_str());
      std::fflush(stdout);
      if (!keeps_terminal) close_terminal();
      if (daemon->listener() >= 0) link.listening(daemon->listener());
    }
    link.ready(daemon->descriptor());
  };
  events.detached = [&] { link.listener_closed(); };
  events.ending = [&] { link.ending(); };
  events.alive = [&] { link.alive(); };
  events.alive_every = alive_every;
  daemon->run(std::move(events));
  return 0;
}

Result<Topology> topology_with_uplink(const std::string& address) {
  Result<Topology> topology = uplink_topology(address);
  if (!topology) return errorf(EINVAL, "uplink={}: {}", address, topology.error().reason);
  const PortSpec& port = topology->devices[0].ports[0];
  Ip ip = port.ipv6.value_or(mapped_ipv4(port.ipv4));
  if (is_broadcast(ip)) {
    return errorf(EINVAL, "uplink={}: a broadcast address of this machine's networks", address);
  }
  if (std::optional<Interface> interface = interface_of(ip)) {
    if (roce_mtu(interface->mtu) == 0) {
      return errorf(EINVAL, "uplink={}: {} has MTU {}, too small for RoCE", address,
                    interface->name, interface->mtu);
    }
  }
  return topology;
}

// Refuses addresses of the file that are broadcast addresses of this machine's networks.
Result<void> check_addresses(const Config& config) {
  if (!config.topology || config.topology->uplinks.empty()) return {};
  for (const DeviceSpec& device : config.topology->devices) {
    for (const PortSpec& port : device.ports) {
      if (port.ipv4_line == 0 || !is_broadcast(mapped_ipv4(port.ipv4))) continue;
      return errorf(EINVAL, "{}:{}: ip={}: a broadcast address of this machine's networks",
                    config.name, port.ipv4_line, ip_text(mapped_ipv4(port.ipv4)));
    }
  }
  return {};
}

// The configuration: of the file, or of an uplink alone.
Result<Config> configuration_of(const Options& options) {
  Config config;
  if (!options.config.empty()) {
    Result<Config> read = read_config(options.config);
    if (!read) return read.error();
    config = std::move(*read);
    if (Result<void> checked = check_addresses(config); !checked) return checked.error();
  }
  if (!options.uplink.empty()) {
    Result<Topology> topology = topology_with_uplink(options.uplink);
    if (!topology) return topology.error();
    config.topology = std::move(*topology);
    config.topology->uplinks.front().gso = options.gso;
  }
  return config;
}

Result<void> check_faults(const char* faults) {
  FaultState unused{};
  return Faults(unused).arm(faults ? faults : "");
}

// Error for a word where no path is, as a mistyped command: a path has a slash as a rule. Those for
// the end of a mount would begin one.
Result<void> check_words(const Options& options) {
  const std::string& place = options.mount_point;
  if (options.source == "umount" || options.source == "unmount") {
    return errorf(EINVAL, "{} is no command: fusermount3 -u {} ends a mount", options.source,
                  place);
  }
  if (std::string_view meant = command_like(options.source); !meant.empty()) {
    return errorf(EINVAL, "{} is no command: {} is one, and rocefs --help tells more",
                  options.source, meant);
  }
  struct stat status;
  if (place.find('/') != place.npos || ::stat(place.c_str(), &status) == 0 || errno != ENOENT) {
    return {};
  }
  if (options.source == Options().source) {
    return errorf(ENOENT, "{} is neither a command nor a directory: rocefs --help tells more",
                  place);
  }
  return errorf(ENOENT, "{} is no command, and {} no directory: rocefs --help tells more",
                options.source, place);
}

// Mounts, and supervises workers until the mount ends. Every worker is forked with the
// configuration that is read here.
int serve(const Options& options) {
  const ServiceManager manager = ServiceManager::from_environment();
  // To the process that waits until the mount is there; -1 in the foreground, without `rocefs run`.
  int status_pipe = take_status_pipe();
  if (!options.foreground) {
    status_pipe = fork_to_background(manager);
    if (status_pipe < 0) {
      std::perror("rocefs: fork");
      return 1;
    }
  }
  block_signals();
  Result<Config> read = configuration_of(options);
  if (!read) return print_failure({kUsageError, read.error().reason});
  const Config& config = *read;
  if (status_pipe >= 0) close_inherited(status_pipe);  // the configuration may be one of them
  const size_t devices = config.topology ? config.topology->devices.size() : 2;
  if (Result<void> enough = check_limits(sizeof(SavedState) + SavedState::kRecordSize, devices);
      !enough) {
    return print_failure({1, enough.error().reason});
  }
  auto journal = Journal::create(sizeof(SavedState), SavedState::kRecordSize);
  if (!journal) return print_failure({1, journal.error().reason});
  SavedState& saved = (*journal)->state<SavedState>();
  const char* faults = std::getenv("ROCEFS_FAULT");
  if (Result<void> checked = check_faults(faults); !checked) {
    return print_failure({kUsageError, checked.error().reason});
  }
  auto mounted = [status_pipe, faults, &saved, &manager](const std::string& status) {
    if (faults) (void)Faults(saved.faults).arm(faults);
    (void)!::chdir("/");
    if (status_pipe < 0) return manager.ready(::getpid(), status);
    close_terminal();
    (void)!::write(status_pipe, status.data(), std::min<size_t>(status.size(), PIPE_BUF));
    ::close(status_pipe);
  };
  auto worker = [&](WorkerLink& link) {
    return work(options, status_pipe < 0, config, **journal, link,
                Supervisor::alive_every(manager));
  };
  Supervisor supervisor(saved, manager, worker, mounted);
  return supervisor.run();
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_files();
  // No fastbins: freed small blocks are merged at once. Otherwise the thread that frees the next
  // large block merges them all, for half a second after a burst of a million: often the core.
  ::mallopt(M_MXFAST, 0);
  if (argc > 1 && std::string_view(argv[1]) == "enter") return enter(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "host") return host(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "attach") return attach(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "detach") return detach(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "run") return run_with_mount(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "wait") return wait_for_files(argc - 1, argv + 1);
  for (const char* command : {"top", "view"}) {
    if (argc > 1 && argv[1] == std::string_view(command)) {
      return run_beside((std::string("rocefs-") + command).c_str(), argc - 1, argv + 1);
    }
  }
  report_exhausted_limits();
  if (argc > 1 && std::string_view(argv[1]) == "sim") return simulate(argc - 1, argv + 1);
  Result<Options> options = parse_options(argc, argv);
  // The options of a mistyped command are not the mount's.
  if (std::string_view meant = argc > 2 ? command_like(argv[1]) : ""; !options && !meant.empty()) {
    options = errorf(EINVAL, "{} is no command: {} is one", argv[1], meant);
  }
  if (!options) {
    std::fprintf(stderr, "rocefs: %s\nTry 'rocefs --help'.\n", options.error().reason.c_str());
    return kUsageError;
  }
  if (options->help) {
    std::fputs(kUsage, stdout);
    return finish_output(0);
  }
  if (options->version) return print_version();
  if (Result<void> checked = check_words(*options); !checked) {
    return print_failure({1, checked.error().reason});
  }
  options->open_files = raise_open_files();
  return serve(*options);
}
