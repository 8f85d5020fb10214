#include "core/process/bounded_look.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/fd.h"

namespace rocefs {
namespace {

constexpr int kPatience = 5;  // seconds: busy machines exist
constexpr int kMoment = 2;

// Queries a path. Retries once: if a server dies during the query, it fails with ECONNABORTED, and
// the next one shows that there is no server.
Look look_at(const char* path) {
  struct statx status;
  Look look;
  for (int i = 0; i < 2; ++i) {
    constexpr int kFlags = AT_STATX_FORCE_SYNC;
    look.code = ::statx(AT_FDCWD, path, kFlags, STATX_BASIC_STATS, &status) == 0 ? 0 : errno;
    if (look.code != ECONNABORTED) break;
  }
  if (look.code != 0) return look;
  look.mode = status.stx_mode;
  look.device = makedev(status.stx_dev_major, status.stx_dev_minor);
  return look;
}

// Runs the child. Closes all other descriptors of this process, because nothing must wait for their
// end. The alarm ends the child where a signal can.
[[noreturn]] void live(const char* path, int report) {
  ::dup2(report, 0);
  ::close_range(1, ~0u, 0);
  sigset_t none;
  sigemptyset(&none);
  ::signal(SIGALRM, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::alarm(kPatience);
  Look look = look_at(path);
  (void)!::write(0, &look, sizeof look);
  ::_exit(0);
}

// Starts a query in a detached process. Returns the pipe of its answer; nothing, and `code`, on
// failure.
Fd ask(const char* path, int& code) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    code = errno;
    return {};
  }
  Fd ours(ends[0]), theirs(ends[1]);
  pid_t between = ::fork();
  if (between < 0) {
    code = errno;
    return {};
  }
  if (between == 0) {
    pid_t looks = ::fork();
    if (looks == 0) live(path, theirs.get());
    Look none{errno};
    if (looks < 0) (void)!::write(theirs.get(), &none, sizeof none);
    ::_exit(0);
  }
  ::waitpid(between, nullptr, 0);
  return ours;
}

void set(const Fd& timer, int seconds) {
  itimerspec once{};
  once.it_value.tv_sec = seconds;
  ::timerfd_settime(timer.get(), 0, &once, nullptr);
}

}  // namespace

bool could_not_look(int code) {
  return code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE;
}

std::vector<Look> bounded_look(const std::vector<std::string>& paths) {
  std::vector<Look> looks(paths.size(), Look{ETIMEDOUT, 0, 0});
  std::vector<Fd> answers;
  std::vector<pollfd> waiting;
  for (size_t i = 0; i < paths.size(); ++i) {
    answers.push_back(ask(paths[i].c_str(), looks[i].code));
    waiting.push_back({answers[i].get(), POLLIN, 0});
  }
  Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  set(timer, kPatience);
  waiting.push_back({timer.get(), POLLIN, 0});
  auto open = [](const pollfd& one) { return one.fd >= 0; };
  while (std::any_of(waiting.begin(), waiting.end() - 1, open)) {
    ::poll(waiting.data(), waiting.size(), timer ? -1 : kPatience * 1000);
    bool late = waiting.back().revents != 0 || !timer, found = false;
    for (size_t i = 0; i < paths.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      Look look;
      if (::read(waiting[i].fd, &look, sizeof look) == sizeof look) looks[i] = look;
      found |= looks[i].code == 0;
      waiting[i] = {-1, 0, 0};
    }
    if (late) break;
    if (found) set(timer, kMoment);
  }
  return looks;
}

Look bounded_look(const std::string& path) {
  return bounded_look(std::vector<std::string>{path}).front();
}

}  // namespace rocefs
