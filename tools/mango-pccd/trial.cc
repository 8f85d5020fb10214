#include "tools/mango-pccd/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "pcc/algorithms/built_ins.h"
#include "pcc/run/handle.h"
#include "pcc/run/library_copy.h"
#include "pcc/run/plugin.h"
#include "tools/mango-pccd/watchdog.h"

extern char** environ;

namespace rocefs {
namespace {

// Number of the pipe to the parent in the process that tries. Not that of the daemon's socket,
// which is closed there.
constexpr int kParentPipe = 4;
constexpr int kLibrary = 5;  // the copy of the file
constexpr int kPidfd = 3;    // P_PIDFD of waitid(2)
constexpr size_t kAtOnce = 8;
constexpr TimeNs kPatience = 15 * kSecond;
constexpr TimeNs kLook = 250 * kMillisecond;  // at most, between two looks at the processes
constexpr size_t kMaxVerdict = PIPE_BUF;
constexpr std::string_view kGood = "good\n", kBad = "bad\n";

// Process that tries a file. Its group is killed at the end.
class TrialProcess {
 public:
  // Empty if it cannot be started; errno says why.
  static std::optional<TrialProcess> start(const LibraryCopy& library);
  TrialProcess(TrialProcess&&) = default;
  TrialProcess& operator=(TrialProcess&&) = default;

  // Readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }
  // Kills its group and reaps it. Returns the reason to refuse the file.
  std::string end(bool in_time);

 private:
  TrialProcess(pid_t pid, Fd pipe, Fd pidfd)
      : pid_(pid), pipe_(std::move(pipe)), pidfd_(std::move(pidfd)) {}
  std::string said() const;

  pid_t pid_;
  Fd pipe_, pidfd_;
};

std::optional<TrialProcess> TrialProcess::start(const LibraryCopy& library) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  Fd ours(ends[0]), theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  // By way of numbers that are free: each may have one that the other is to have.
  const int free = std::max({theirs.get(), library.memory.get(), kLibrary}) + 1;
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), free);
  ::posix_spawn_file_actions_adddup2(&files, library.memory.get(), kLibrary);
  ::posix_spawn_file_actions_adddup2(&files, free, kParentPipe);
  ::posix_spawn_file_actions_addopen(&files, kParentPipe - 1, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&files, kLibrary + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char name[] = "mango-pccd";
  std::string word = kTrialWord, argument = library.file;
  char* arguments[] = {name, word.data(), argument.data(), nullptr};
  pid_t pid = -1;
  int code = ::posix_spawn(&pid, "/proc/self/exe", &files, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  errno = code;
  if (code != 0) return std::nullopt;
  // Not reaped yet, so the pid is still valid.
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return TrialProcess(pid, std::move(ours), std::move(pidfd));
  code = errno;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  errno = code;
  return std::nullopt;
}

// A verdict fits into the pipe, so that the process does not wait for a reader.
std::string TrialProcess::said() const {
  std::string text(kMaxVerdict, '\0');
  ssize_t got = ::read(pipe_.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

std::string TrialProcess::end(bool in_time) {
  // The number of the group is its own until it is reaped, which code of a plugin may have done.
  ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (::waitid(static_cast<idtype_t>(kPidfd), static_cast<id_t>(pidfd_.get()), &info,
                  WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return "it cannot be tried: its process was reaped by another plugin";
  }
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return fmt::format("it has not been loaded after {} s", Watchdog::kMaxLoad / kSecond);
  }
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return fmt::format("it dies of SIG{} while it is loaded", name ? name : "?");
  }
  std::string text = said();
  if (text == kGood) return "";
  if (text.starts_with(kBad)) return text.substr(kBad.size());
  return fmt::format("it ends the process with status {} while it is loaded", WEXITSTATUS(status));
}

bool has_ended(int pidfd) {
  pollfd watched{pidfd, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

// Tries some files beside each other.
std::vector<std::string> try_together(std::span<const LibraryCopy> libraries) {
  std::vector<std::string> reasons(libraries.size());
  std::vector<std::optional<TrialProcess>> trials;
  for (const LibraryCopy& library : libraries) {
    const size_t i = trials.size();
    trials.push_back(TrialProcess::start(library));
    if (!trials[i]) reasons[i] = fmt::format("it cannot be tried: {}", std::strerror(errno));
  }
  TimeNs now = monotonic_ns(), deadline = now + Watchdog::kMaxLoad;
  for (;;) {
    std::vector<pollfd> watched;
    for (const auto& trial : trials) {
      if (trial) watched.push_back({trial->pidfd(), POLLIN, 0});
    }
    if (watched.empty() || now >= deadline) break;
    (void)::poll(watched.data(), watched.size(), static_cast<int>(kLook / kMillisecond));
    // While this process was stopped, those were too, or had no time.
    const TimeNs before = std::exchange(now, monotonic_ns());
    if (now - before > 2 * kLook) deadline += now - before;
    for (size_t i = 0; i < trials.size(); ++i) {
      if (!trials[i] || !has_ended(trials[i]->pidfd())) continue;
      reasons[i] = trials[i]->end(true);
      trials[i].reset();
    }
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i]) reasons[i] = trials[i]->end(has_ended(trials[i]->pidfd()));
  }
  return reasons;
}

}  // namespace

std::vector<std::string> try_plugins(std::span<const LibraryCopy> libraries) {
  std::vector<std::string> reasons;
  const TimeNs begin = monotonic_ns();
  for (std::span rest = libraries; !rest.empty() && monotonic_ns() - begin < kPatience;) {
    const size_t some = std::min(kAtOnce, rest.size());
    for (std::string& reason : try_together(rest.first(some))) reasons.push_back(std::move(reason));
    rest = rest.subspan(some);
  }
  reasons.resize(libraries.size(), "it was not tried: others took too long");
  return reasons;
}

void try_plugin(const char* file) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd parent{kParentPipe, 0, 0};
  if (::poll(&parent, 1, 0) == 1) ::_exit(0);  // the parent has gone already
  ::fcntl(kParentPipe, F_SETFD, FD_CLOEXEC);
  const LibraryCopy library{file, Fd(kLibrary)};
  std::string verdict(kGood);
  {
    PccHandle handle(nullptr, 1);
    add_built_ins(handle.controller());
    Result<std::unique_ptr<PccPlugin>> plugin = PccPlugin::load(handle, library);
    if (plugin) {
      (*plugin)->try_keep();
    } else {
      verdict = std::string(kBad) + plugin.error().reason;
    }
  }
  verdict.resize(std::min(verdict.size(), kMaxVerdict));
  (void)!::write(kParentPipe, verdict.data(), verdict.size());
  ::_exit(0);
}

}  // namespace rocefs
