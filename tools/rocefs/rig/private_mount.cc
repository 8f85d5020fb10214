#include "tools/rocefs/rig/private_mount.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/process/close_all_but.h"
#include "core/process/standard_files.h"
#include "fs/mount_point.h"
#include "tools/rocefs/command/status_pipe.h"

namespace rocefs {

// Start of a server: its command line, where it says what is wrong and that it serves, and the
// signals that are blocked in it.
struct PrivateMount::Server {
  const std::vector<std::string>& options;
  const std::string& config;
  int output, status;
  sigset_t blocked;

  // Replaces the process.
  [[noreturn]] void run(const std::string& directory) const;
};

namespace {

constexpr char kKeep = 'k', kEnd = 'e', kProbe = 'p';  // to the watcher
constexpr char kLives = 'l', kEnded = 'x';             // of the server, its answer to kProbe

// First word of a watcher: that it has made the directory and started the server, or why not.
struct Report {
  int code = 0;
  char directory[PATH_MAX] = {};
};

// Mount option, in which a comma ends the path unless a backslash stands before it.
std::string config_option(const std::string& path) {
  std::string option = "config=";
  for (char letter : path) {
    if (letter == ',' || letter == '\\') option += '\\';
    option += letter;
  }
  return option;
}

void wait_for(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Text of a pipe up to its end, or the first `limit` octets.
std::string text_of(const Fd& pipe, size_t limit) {
  std::string text(limit, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(pipe.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

bool is_mounted(const std::string& directory) {
  return mounted_device(directory).has_value();
}

// The process of a PrivateMount that outlives a killed owner. No signal but SIGKILL reaches it, and
// none of the terminal: it has a session of its own before it makes anything.
class Watcher {
 public:
  explicit Watcher(Fd lifeline) : lifeline_(std::move(lifeline)) { ::setsid(); }

  // Makes the directory and the server, which runs `serve`.
  template <typename Serve>
  void start(const std::string& pattern, const Serve& serve) {
    Report report;
    pattern.copy(report.directory, sizeof report.directory - 1);
    if (::mkdtemp(report.directory)) {
      directory_ = report.directory;
      server_ = ::fork();
      if (server_ == 0) serve(directory_);
    }
    if (server_ < 0) report.code = errno;
    (void)!::send(lifeline_.get(), &report, sizeof report, MSG_NOSIGNAL);
  }

  // Waits for a word of the owner or its end.
  [[noreturn]] void watch() {
    close_all_but(lifeline_.get(), lifeline_.get());
    reserve_standard_files();
    for (;;) {
      char word = kEnd;
      while (::read(lifeline_.get(), &word, 1) < 0 && errno == EINTR) {
      }
      if (word == kProbe) {
        const char answer = lives() ? kLives : kEnded;
        (void)!::send(lifeline_.get(), &answer, 1, MSG_NOSIGNAL);
        continue;
      }
      if (word == kEnd) end();
      ::_exit(0);
    }
  }

 private:
  // Stops the server for a moment: one that somebody has killed cannot be stopped any more, though
  // it may take a while to end.
  bool lives() {
    if (server_ < 0) return false;
    int status = 0;
    ::kill(server_, SIGSTOP);
    while (::waitpid(server_, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (WIFSTOPPED(status)) {
      ::kill(server_, SIGCONT);
      return true;
    }
    server_ = -1;
    return false;
  }

  // The server's number stays its own until it is waited for here.
  void end() {
    if (server_ > 0) {
      ::kill(server_, SIGTERM);
      wait_for(server_);
    }
    if (directory_.empty()) return;
    // The server was killed.
    if (auto device = mounted_device(directory_)) unmount_own(directory_, *device);
    ::rmdir(directory_.c_str());
  }

  Fd lifeline_;
  std::string directory_;
  pid_t server_ = -1;
};

}  // namespace

// The server keeps the caller's files, of which the configuration may be one, until it has read
// that. The service manager knows the caller, not the mount.
void PrivateMount::Server::run(const std::string& directory) const {
  ::setsid();
  ::signal(SIGTERM, SIG_DFL);  // the caller may ignore it
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  hand_status_pipe(status);
  std::vector<std::string> words{"rocefs", "-f"};
  for (const std::string& option : options) words.insert(words.end(), {"-o", option});
  if (!config.empty()) words.insert(words.end(), {"-o", config_option(config)});
  words.push_back(directory);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  std::fprintf(stderr, "rocefs: %s\n", std::strerror(errno));
  ::_exit(1);
}

Result<PrivateMount> PrivateMount::make(const std::vector<std::string>& options,
                                        const std::string& config) {
  const char* named = std::getenv("TMPDIR");
  const std::string base = named && *named ? named : "/tmp";
  // Absolute: the command may have another working directory.
  std::unique_ptr<char, decltype(&std::free)> place(::realpath(base.c_str(), nullptr), std::free);
  if (!place) return errorf(errno, "{}: {}", base, std::strerror(errno));
  int output[2], status[2];
  if (::pipe2(output, O_CLOEXEC) != 0) return Error{errno, std::strerror(errno)};
  Fd said(output[0]), saying(output[1]);
  if (::pipe2(status, O_CLOEXEC) != 0) return Error{errno, std::strerror(errno)};
  Fd served(status[0]), serving(status[1]);
  PrivateMount mount;
  if (Result<void> started = mount.start(std::string(place.get()) + "/rocefs-XXXXXX",
                                         {options, config, saying.get(), serving.get(), {}});
      !started) {
    mount.dismiss_watcher(kEnd);
    return started.error();
  }
  saying.reset();
  serving.reset();
  if (!text_of(served, 1).empty()) return mount;
  std::string why = text_of(said, 4096);
  mount.dismiss_watcher(kEnd);
  while (why.ends_with('\n')) why.pop_back();
  if (why.starts_with("rocefs: ")) why.erase(0, std::strlen("rocefs: "));
  return Error{EIO, why.empty() ? "the mount ended at once" : why};
}

// Signals wait until the owner has a watcher, and find none that has not left the terminal. Before
// that, nothing is there that SIGKILL could leave.
Result<void> PrivateMount::start(const std::string& pattern, Server server) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{errno, std::strerror(errno)};
  }
  Fd near(ends[0]), far(ends[1]);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &server.blocked);
  watcher_ = ::fork();
  const int code = errno;
  if (watcher_ == 0) {
    near.reset();
    Watcher watcher(std::move(far));
    watcher.start(pattern, [&](const std::string& directory) { server.run(directory); });
    watcher.watch();
  }
  ::sigprocmask(SIG_SETMASK, &server.blocked, nullptr);
  if (watcher_ < 0) return Error{code, std::strerror(code)};
  far.reset();
  lifeline_ = std::move(near);
  Report report;
  ssize_t got;
  while ((got = ::recv(lifeline_.get(), &report, sizeof report, 0)) < 0 && errno == EINTR) {
  }
  if (got != sizeof report) return Error{EIO, "the process that mounts was killed"};
  directory_ = report.directory;
  if (report.code != 0) {
    return errorf(report.code, "{}: {}", directory_, std::strerror(report.code));
  }
  return {};
}

void PrivateMount::dismiss_watcher(char word) {
  if (watcher_ < 0) return;
  (void)!::send(lifeline_.get(), &word, 1, MSG_NOSIGNAL);
  wait_for(watcher_);
  watcher_ = -1;
}

bool PrivateMount::ended() const {
  char answer = kProbe;
  (void)!::send(lifeline_.get(), &answer, 1, MSG_NOSIGNAL);
  while (::recv(lifeline_.get(), &answer, 1, 0) < 0 && errno == EINTR) {
  }
  return answer == kEnded || !is_mounted(directory_);
}

void PrivateMount::keep() {
  dismiss_watcher(kKeep);
}

Result<void> PrivateMount::end() {
  dismiss_watcher(kEnd);
  if (::rmdir(directory_.c_str()) == 0 || errno == ENOENT) return {};
  return errorf(errno, "{} stays: {}", directory_, std::strerror(errno));
}

}  // namespace rocefs
