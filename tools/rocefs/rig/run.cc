#include "tools/rocefs/rig/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/process/close_all_but.h"
#include "core/process/process_status.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/enter/launch.h"

namespace rocefs {

const char* const kRunUsage =
    R"(usage: rocefs run [-o OPTION[,OPTION…]] [--keep WHEN] [CONFIG] -- COMMAND [ARGUMENT…]

Mounts a rocefs at a new directory, with the configuration file CONFIG or two NICs without one, runs
COMMAND, and unmounts. COMMAND finds the mount in $ROCEFS_MOUNT. If it fails, the last lines of the
mount's dmesg are printed, and the mount stays for a look.

  -o OPTION      option of the mount, as of rocefs: clock=virtual, seed=7, …
  --keep WHEN    when the mount stays: failure (the default), always or never
  -h, --help     this text

The exit status is that of COMMAND, 128 and the signal's number if a signal ended it; 125 if nothing
could be mounted or the mount ended by itself, 126 if COMMAND cannot be run, 127 if it is not found.

  rocefs run -o clock=virtual pair.ini -- ./rig.sh
  rocefs run -- rocefs enter -- ibv_devinfo
)";

namespace {

constexpr char kRunProgram[] = "rocefs run";

enum class Keep { kNever, kFailure, kAlways };

struct RunOptions {
  bool help = false;
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
                              {"keep", required_argument, nullptr, 'k'},
                              {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int c; (c = getopt_long(own, argv, "+:o:h", kLong, nullptr)) != -1;) {
    if (c == 'h') {
      options.help = true;
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

// Mount option, in which a comma ends the path unless a backslash stands before it.
std::string config_option(const std::string& path) {
  std::string option = "config=";
  for (char letter : path) {
    if (letter == ',' || letter == '\\') option += '\\';
    option += letter;
  }
  return option;
}

// A rocefs in the foreground, child of this process, at a directory of its own. If this process is
// killed, a third one ends it.
class PrivateMount {
 public:
  static Result<PrivateMount> make(const RunOptions& options);

  const std::string& directory() const { return directory_; }
  // Whether it serves no more.
  bool ended() {
    if (::waitpid(server_, nullptr, WNOHANG) != 0) server_ = -1;
    return server_ < 0;
  }
  // Leaves it to others.
  void keep() { tell_watcher(); }
  // Unmounts, and waits until its processes have ended.
  void end();

 private:
  Result<void> start(const RunOptions& options);
  void start_watcher();
  [[noreturn]] void serve(const RunOptions& options, int output) const;
  [[noreturn]] void watch(Fd lifeline) const;
  // The watcher has nothing left to do.
  void tell_watcher();

  std::string directory_;
  pid_t server_ = -1, watcher_ = -1;
  Fd lifeline_;  // to the watcher
};

Result<PrivateMount> PrivateMount::make(const RunOptions& options) {
  const char* base = std::getenv("TMPDIR");
  PrivateMount mount;
  mount.directory_ = std::string(base && *base ? base : "/tmp") + "/rocefs-XXXXXX";
  if (!::mkdtemp(mount.directory_.data())) {
    return errorf(errno, "{}: {}", mount.directory_, std::strerror(errno));
  }
  if (Result<void> started = mount.start(options); !started) {
    mount.tell_watcher();
    ::rmdir(mount.directory_.c_str());
    return started.error();
  }
  return mount;
}

// Neither the terminal's signals nor its own end reach the server: it outlives this process where
// the mount stays.
void PrivateMount::serve(const RunOptions& options, int output) const {
  ::setsid();
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  std::vector<std::string> words{"rocefs", "-f"};
  for (const std::string& option : options.mount_options) words.insert(words.end(), {"-o", option});
  if (!options.config.empty()) words.insert(words.end(), {"-o", config_option(options.config)});
  words.push_back(directory_);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  std::fprintf(stderr, "rocefs: %s\n", std::strerror(errno));
  ::_exit(kNotPrepared);
}

Result<void> PrivateMount::start(const RunOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{errno, std::strerror(errno)};
  Fd output(ends[0]), input(ends[1]);
  server_ = ::fork();
  if (server_ < 0) return Error{errno, std::strerror(errno)};
  if (server_ == 0) serve(options, input.get());
  input.reset();
  start_watcher();
  // The first line on success is the mount's; on failure it prints why, and ends.
  std::string said;
  const std::string success = fmt::format("rocefs: {}:", directory_);
  char part[4096];
  for (ssize_t size; (size = ::read(output.get(), part, sizeof part)) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;
    said.append(part, static_cast<size_t>(size));
    if (said.find(success) != std::string::npos) return {};
  }
  ::waitpid(server_, nullptr, 0);
  while (said.ends_with('\n')) said.pop_back();
  if (said.starts_with("rocefs: ")) said.erase(0, std::strlen("rocefs: "));
  return Error{EIO, said.empty() ? "the mount ended at once" : said};
}

void PrivateMount::start_watcher() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  Fd near(ends[1]), far(ends[0]);
  watcher_ = ::fork();
  if (watcher_ == 0) watch(std::move(far));
  lifeline_ = std::move(near);
}

void PrivateMount::watch(Fd lifeline) const {
  Fd server(static_cast<int>(::syscall(SYS_pidfd_open, server_, 0)));
  close_all_but(lifeline.get(), server.get());
  ::setsid();
  char word;
  if (::read(lifeline.get(), &word, 1) != 0) ::_exit(0);
  // The one who would have ended the mount was killed.
  if (::syscall(SYS_pidfd_send_signal, server.get(), SIGTERM, nullptr, 0) == 0) {
    pollfd ended{server.get(), POLLIN, 0};
    (void)::poll(&ended, 1, -1);
  }
  ::rmdir(directory_.c_str());
  ::_exit(0);
}

void PrivateMount::tell_watcher() {
  if (watcher_ < 0) return;
  (void)!::write(lifeline_.get(), "k", 1);
  ::waitpid(watcher_, nullptr, 0);
  watcher_ = -1;
}

void PrivateMount::end() {
  if (server_ > 0) {
    ::kill(server_, SIGTERM);
    ::waitpid(server_, nullptr, 0);
  }
  tell_watcher();
  ::rmdir(directory_.c_str());
}

// Forwarded to the command. SIGINT and SIGQUIT of a terminal reach it by themselves.
volatile sig_atomic_t command_pid = 0;
void forward(int signal) {
  if (command_pid > 0) ::kill(command_pid, signal);
}

struct CommandEnd {
  int status = 0;
  bool ran = true;  // false: it could not be started
};

// Runs the command as a shell does.
CommandEnd run_command(char** command) {
  int ends[2];  // the second closes when the command has started
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {print_not_prepared(kRunProgram, {errno, std::strerror(errno)}), false};
  }
  Fd failure(ends[0]), failing(ends[1]);
  struct sigaction ignored {
  }, forwarded{}, interrupt{}, quit{}, terminate{}, hang_up{};
  ignored.sa_handler = SIG_IGN;
  forwarded.sa_handler = forward;
  ::sigaction(SIGINT, &ignored, &interrupt);
  ::sigaction(SIGQUIT, &ignored, &quit);
  // A signal between fork and the child's own handlers is delivered to the command.
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  ::sigaction(SIGTERM, &forwarded, &terminate);
  ::sigaction(SIGHUP, &forwarded, &hang_up);
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigaction(SIGINT, &interrupt, nullptr);
    ::sigaction(SIGQUIT, &quit, nullptr);
    ::sigaction(SIGTERM, &terminate, nullptr);
    ::sigaction(SIGHUP, &hang_up, nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    const int status = replace_by(kRunProgram, command);
    (void)!::write(failing.get(), "f", 1);
    ::_exit(status);
  }
  command_pid = child;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return {print_not_prepared(kRunProgram, {errno, std::strerror(errno)}), false};
  failing.reset();
  char word;
  ssize_t failed;
  while ((failed = ::read(failure.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  command_pid = 0;
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), failed <= 0};
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

}  // namespace

int run_with_mount(int argc, char** argv) {
  Result<RunOptions> options = parse_run(argc, argv);
  if (!options) return refuse_usage(kRunProgram, options.error());
  if (options->help) {
    std::fputs(kRunUsage, stdout);
    return finish_output(0);
  }
  Result<PrivateMount> mount = PrivateMount::make(*options);
  if (!mount) return print_not_prepared(kRunProgram, mount.error());
  export_mount(mount->directory());
  const auto [status, ran] = run_command(options->command);
  if (mount->ended()) {
    std::fprintf(stderr, "%s: the mount has ended by itself; the command ended with status %d\n",
                 kRunProgram, status);
    mount->end();
    return kNotPrepared;
  }
  if (ran && status != 0) {
    std::fprintf(stderr, "%s: %s ended with status %d\n", kRunProgram, options->command[0], status);
    print_end_of_dmesg(mount->directory());
  }
  const bool stays =
      options->keep == Keep::kAlways || (options->keep == Keep::kFailure && ran && status != 0);
  if (!stays) {
    mount->end();
    return status;
  }
  mount->keep();
  std::fprintf(stderr, "%s: the mount stays at %s; `fusermount3 -u %s` ends it\n", kRunProgram,
               mount->directory().c_str(), mount->directory().c_str());
  return status;
}

}  // namespace rocefs
