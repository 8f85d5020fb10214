#include "tools/rocefs/rig/run.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/process/process_status.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/enter/launch.h"
#include "tools/rocefs/rig/private_mount.h"

namespace rocefs {

const char* const kRunUsage =
    R"(usage: rocefs run [-o OPTION[,OPTION…]] [--keep WHEN] [CONFIG] -- COMMAND [ARGUMENT…]

Mounts a rocefs at a new directory, with the configuration file CONFIG or two NICs without one, runs
COMMAND, and unmounts. COMMAND finds the mount in $ROCEFS_MOUNT. If it fails by itself, the last lines
of the mount's dmesg are printed, and the mount stays for a look; a run that is stopped keeps none.

  -o OPTION      option of the mount, as of rocefs: clock=virtual, seed=7, …
  --keep WHEN    when the mount stays: failure (the default), always or never
  -h, --help     this text
  -V, --version

The exit status is that of COMMAND, 128 and the signal's number if a signal ended it; 125 if nothing
could be mounted or the mount ended by itself, 126 if COMMAND cannot be run, 127 if it is not found.

  rocefs run -o clock=virtual pair.ini -- ./rig.sh
  rocefs run -- rocefs enter -- ibv_devinfo
)";

namespace {

constexpr char kRunProgram[] = "rocefs run";

enum class Keep { kNever, kFailure, kAlways };

struct RunOptions {
  bool help = false, version = false;
  Keep keep = Keep::kFailure;
  std::vector<std::string> mount_options;
  std::string config;
  char** command = nullptr;
};

std::optional<Keep> keep_of(std::string_view word) {
  if (word == "never") return Keep::kNever;
  if (word == "failure") return Keep::kFailure;
  if (word == "always") return Keep::kAlways;
  return std::nullopt;
}

Result<RunOptions> parse_run(int argc, char** argv) {
  RunOptions options;
  char** end = argv + argc;
  char** dashes =
      std::find_if(argv, end, [](const char* word) { return !std::strcmp(word, "--"); });
  const int own = static_cast<int>(dashes - argv);
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'V'},
                              {"keep", required_argument, nullptr, 'k'},
                              {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int c; (c = getopt_long(own, argv, "+:o:hV", kLong, nullptr)) != -1;) {
    if (c == 'h' || c == 'V') {
      (c == 'h' ? options.help : options.version) = true;
      return options;
    }
    if (c == 'o') {
      options.mount_options.push_back(optarg);
    } else if (c == 'k') {
      std::optional<Keep> keep = keep_of(optarg);
      if (!keep) return errorf(EINVAL, "--keep {}: failure, always or never is wanted", optarg);
      options.keep = *keep;
    } else {
      return errorf(EINVAL, "{} {}", argv[optind - 1],
                    c == ':' ? "requires a value" : "is no option");
    }
  }
  if (optind < own) options.config = argv[optind++];
  if (optind < own) return errorf(EINVAL, "{}: a command stands behind --", argv[optind]);
  if (dashes == end || dashes + 1 == end) return Error{EINVAL, "a command is wanted behind --"};
  options.command = dashes + 1;
  return options;
}

// Signals that ask for an end are passed on to the command. Those of the terminal's keys reach it
// by themselves. A command that lives on after such a key, as a shell does, has not been stopped by
// it.
constexpr int kStops[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
constexpr TimeNs kKeyTime = 2 * kSecond;  // in which a command ends that a key has stopped
volatile sig_atomic_t command_pid = 0;
volatile sig_atomic_t stopped = 0;  // the caller wants an end
std::atomic<TimeNs> last_key = 0;
void forward_stop(int signal, siginfo_t* from, void*) {
  if (signal == SIGINT || signal == SIGQUIT) {
    last_key = monotonic_ns();
  } else {
    stopped = 1;
  }
  const bool everywhere = from->si_code == SI_KERNEL && signal != SIGHUP;
  if (command_pid > 0 && !everywhere) ::kill(command_pid, signal);
}

// Whether the end was wanted.
bool was_stopped(int status) {
  const TimeNs key = last_key;
  const bool of_key = status == 128 + SIGINT || status == 128 + SIGQUIT;
  return stopped || (key > 0 && (of_key || monotonic_ns() - key < kKeyTime));
}

// Handlers in place of those that the process was started with. A signal that it ignored stays
// ignored, here and in the command. Writing to a pipe that is closed is an error: the command's
// status is wanted all the same.
class Handlers {
 public:
  Handlers() {
    struct sigaction forwarded {
    }, ignored{};
    forwarded.sa_sigaction = forward_stop;
    forwarded.sa_flags = SA_SIGINFO;
    ignored.sa_handler = SIG_IGN;
    for (size_t i = 0; i < std::size(kStops); ++i) {
      ::sigaction(kStops[i], nullptr, &stops_[i]);
      if (stops_[i].sa_handler != SIG_IGN) ::sigaction(kStops[i], &forwarded, nullptr);
    }
    ::sigaction(SIGPIPE, &ignored, &pipe_);
  }
  void put_back() const {
    for (size_t i = 0; i < std::size(kStops); ++i) ::sigaction(kStops[i], &stops_[i], nullptr);
    ::sigaction(SIGPIPE, &pipe_, nullptr);
  }

 private:
  struct sigaction stops_[std::size(kStops)], pipe_;
};

struct CommandEnd {
  int status = 0;
  bool failed = false;  // by itself: it was started, and nobody stopped it
};

// Runs the command as a shell does.
CommandEnd run_command(char** command) {
  int ends[2];  // the second closes when the command has started
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {print_not_prepared(kRunProgram, {errno, std::strerror(errno)})};
  }
  Fd failure(ends[0]), failing(ends[1]);
  // A signal between fork and the child's own handlers is delivered to the command.
  sigset_t signals, before;
  sigemptyset(&signals);
  for (int signal : kStops) sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const Handlers handlers;
  const pid_t child = ::fork();
  if (child == 0) {
    handlers.put_back();
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    const int status = replace_by(kRunProgram, command);
    (void)!::write(failing.get(), "f", 1);
    ::_exit(status);
  }
  command_pid = child;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return {print_not_prepared(kRunProgram, {errno, std::strerror(errno)})};
  failing.reset();
  char word;
  ssize_t failed;
  while ((failed = ::read(failure.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  // The number stays the child's, and may be signalled, until it is waited for.
  siginfo_t unused;
  while (::waitid(P_PID, static_cast<id_t>(child), &unused, WEXITED | WNOWAIT) < 0) {
    if (errno != EINTR) return {print_not_prepared(kRunProgram, {errno, std::strerror(errno)})};
  }
  command_pid = 0;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {exit_status, exit_status != 0 && failed <= 0 && !was_stopped(exit_status)};
}

void print_end_of_dmesg(const std::string& directory) {
  constexpr int kLines = 10;
  std::string text = text_at(AT_FDCWD, (directory + "/kernel/debug/rocefs/dmesg").c_str());
  size_t begin = text.size();
  for (int lines = 0; begin > 0 && lines <= kLines; --begin) {
    if (text[begin - 1] == '\n' && ++lines > kLines) break;
  }
  std::fprintf(stderr, "%s: the end of its dmesg:\n%s", kRunProgram, text.c_str() + begin);
}

void say_what_stays(const Result<void>& ended) {
  if (!ended) std::fprintf(stderr, "%s: %s\n", kRunProgram, ended.error().reason.c_str());
}

}  // namespace

int run_with_mount(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_DFL);  // whoever ignores it loses the exit statuses of children
  Result<RunOptions> options = parse_run(argc, argv);
  if (!options) return refuse_usage(kRunProgram, options.error());
  if (options->version) return print_version();
  if (options->help) {
    std::fputs(kRunUsage, stdout);
    return finish_output(0);
  }
  Result<PrivateMount> mount = PrivateMount::make(options->mount_options, options->config);
  if (!mount) return print_not_prepared(kRunProgram, mount.error());
  export_mount(mount->directory());
  const auto [status, failed] = run_command(options->command);
  if (mount->ended()) {
    std::fprintf(stderr, "%s: the mount has ended by itself; the command ended with status %d\n",
                 kRunProgram, status);
    say_what_stays(mount->end());
    return kNotPrepared;
  }
  if (failed) {
    std::fprintf(stderr, "%s: %s ended with status %d\n", kRunProgram, options->command[0], status);
    print_end_of_dmesg(mount->directory());
  }
  const bool stays = options->keep == Keep::kAlways || (options->keep == Keep::kFailure && failed);
  if (!stays) {
    say_what_stays(mount->end());
    return status;
  }
  mount->keep();
  std::fprintf(stderr, "%s: the mount stays at %s; `fusermount3 -u %s && rmdir %s` ends it\n",
               kRunProgram, mount->directory().c_str(), mount->directory().c_str(),
               mount->directory().c_str());
  return status;
}

}  // namespace rocefs
