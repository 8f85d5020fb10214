#include "tools/rocefs/daemon/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/clock.h"
#include "fs/mount_point.h"
#include "tools/rocefs/daemon/dying.h"

namespace rocefs {
namespace {

constexpr TimeNs kEarly = kSecond;  // a worker that dies sooner has died early
constexpr int kMaxEarlyDeaths = 8;
constexpr int kMaxSilence = 4;  // periods of alive_every(): half of the watchdog's time
constexpr TimeNs kCheckPeriod = 300 * kMillisecond, kDyingCheckPeriod = 200 * kMillisecond;
constexpr char kListening = 'l', kReady = 'r', kListenerClosed = 'n', kEnding = 'e', kAlive = 'a',
               kKeep = 'k';

// One letter, and a name with kKeep, with room for a descriptor, which goes with kListening, kReady
// and kKeep. Not movable: `header` points into it.
struct Message {
  explicit Message(char word = 0, const std::string& about = {}) : letter(word) {
    about.copy(name, sizeof name - 1);
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    header.msg_control = &space;
    header.msg_controllen = sizeof space;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  char letter;
  char name[WorkerLink::kMaxName + 1] = {};
  iovec parts[2] = {{&letter, 1}, {name, sizeof name}};
  msghdr header{};
  union {
    cmsghdr descriptor;
    char bytes[CMSG_SPACE(sizeof(int))];
  } space{};
};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

void unblock(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::string cause_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("SIG{}", sigabbrev_np(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

void WorkerLink::send(char letter, int descriptor, const std::string& name) {
  Message message(letter, name);
  cmsghdr& with = message.space.descriptor;
  with.cmsg_level = SOL_SOCKET;
  with.cmsg_type = SCM_RIGHTS;
  with.cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(&with), &descriptor, sizeof descriptor);
  if (descriptor < 0) message.header.msg_controllen = 0;
  (void)!::sendmsg(socket_.get(), &message.header, MSG_NOSIGNAL);
}

void WorkerLink::listening(int listener) {
  send(kListening, listener);
}

void WorkerLink::keep(const std::string& name, int descriptor) {
  send(kKeep, descriptor, name);
}

void WorkerLink::ready(int descriptor) {
  send(kReady, descriptor);
}

void WorkerLink::listener_closed() {
  (void)!::send(socket_.get(), &kListenerClosed, 1, MSG_NOSIGNAL);
}

void WorkerLink::ending() {
  (void)!::send(socket_.get(), &kEnding, 1, MSG_NOSIGNAL);
}

void WorkerLink::alive() {
  (void)!::send(socket_.get(), &kAlive, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int Supervisor::run() {
  sigset_t set = watched_signals();
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  int status = run_workers();
  guard_.dismiss();
  return status;
}

int Supervisor::run_workers() {
  for (;;) {
    TimeNs born = monotonic_ns();
    start_worker();
    if (worker_ < 0) return give_up(std::string("no worker: ") + std::strerror(errno));
    std::optional<int> status = watch_worker();
    serving_ = false;
    std::string cause = status ? cause_of(*status) : "a signal, and is stuck in the kernel";
    bool orderly = status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
    if (orderly || ending_) {
      if (!orderly || !abandoned_.empty()) end_mount();
      return orderly ? 0 : 1;
    }
    if (!descriptor_) {  // a worker that exits has printed why
      if (status && WIFEXITED(*status)) {
        end_mount();
        return WEXITSTATUS(*status);
      }
      return give_up("the worker died of " + cause + " while it mounted");
    }
    note_death(cause);
    if (!back_off(monotonic_ns() - born)) {
      return give_up(fmt::format("{} workers in a row died within a second, the last of {}",
                                 early_deaths_, cause));
    }
    if (ending_) {
      end_mount();
      return 0;
    }
  }
}

void Supervisor::start_worker() {
  int ends[2];
  worker_ = -1;
  dying_ = false;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  socket_ = Fd(ends[0]);
  Fd workers_end(ends[1]);
  pid_t supervisor = ::getpid();
  worker_ = ::fork();
  if (worker_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);
  ::prctl(PR_SET_NAME, "rocefs-worker");
  unblock(SIGCHLD);
  socket_.reset();
  signals_.reset();
  guard_.forget();
  WorkerLink link(std::move(workers_end), descriptor_.release(), std::move(listener_),
                  std::move(kept_));
  std::exit(work_(link));
}

std::optional<int> Supervisor::watch_worker() {
  pollfd watched[] = {{signals_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(watched, 2, static_cast<int>(poll_timeout() / kMillisecond + 1)) == 0) {
      count_silence();
      if (is_stuck()) break;
    }
    if (watched[1].revents && !take_message()) watched[1].fd = -1;
    if (watched[0].revents) take_signal();
    std::optional<int> status = reap();
    if (!status) continue;
    while (take_message()) {  // messages from before its death
    }
    return status;
  }
  while (take_message()) {
  }
  abandoned_.push_back(worker_);
  ::syslog(LOG_DAEMON | LOG_WARNING, "%s: worker %d was killed, but is stuck in the kernel",
           saved_.mount_point, worker_);
  return std::nullopt;
}

// Reaps all children: abandoned workers too and, if this is the first process of a container,
// orphans.
std::optional<int> Supervisor::reap() {
  int status = 0;
  for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == worker_) return status;
    std::erase(abandoned_, ended);
  }
  return std::nullopt;
}

// Checks twice: a killed process needs a moment to free its memory.
bool Supervisor::is_stuck() {
  bool was_dying = std::exchange(dying_, is_dying(worker_));
  return was_dying && dying_;
}

bool Supervisor::take_message() {
  Message message;
  ssize_t got = ::recvmsg(socket_.get(), &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 1) return false;
  if (message.letter == kAlive) {
    silence_ = 0;
    manager_.alive();
    return true;
  }
  if (message.letter == kListenerClosed || message.letter == kEnding) listener_.reset();
  if (message.letter == kEnding) {
    begin_shutdown();
    // Without the supervisor's descriptor the connection ends with the worker's.
    descriptor_.reset();
    return true;
  }
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  if (!header || header->cmsg_type != SCM_RIGHTS) {
    if (message.letter == kKeep) kept_.erase(message.name);
    return true;
  }
  int descriptor;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  take_descriptor(message.letter, message.name, Fd(descriptor));
  return true;
}

void Supervisor::take_descriptor(char letter, const char* name, Fd descriptor) {
  if (letter == kKeep) {
    kept_[name] = std::move(descriptor);
    return;
  }
  if (letter == kListening) {
    listener_ = std::move(descriptor);
    return;
  }
  bool first = !descriptor_;
  descriptor_ = std::move(descriptor);
  serving_ = true;
  silence_ = 0;
  if (first) {
    begin_mounted();
  } else {
    manager_.status(serving());
  }
}

// The first process of a container takes all others along when it dies: a guard would not help.
void Supervisor::begin_mounted() {
  if (dev_t device = saved_.session.device) cutoff_ = Cutoff(device, saved_.mount_point);
  if (cutoff_ && ::getpid() != 1) guard_ = Guard(cutoff_);
  mounted_(serving());
}

void Supervisor::take_signal() {
  for (signalfd_siginfo info; ::read(signals_.get(), &info, sizeof info) == sizeof info;) {
    if (info.ssi_signo == SIGCHLD) continue;
    begin_shutdown();
    ::kill(worker_, static_cast<int>(info.ssi_signo));
    ::kill(worker_, SIGCONT);  // a stopped worker would not end
  }
}

void Supervisor::begin_shutdown() {
  if (std::exchange(ending_, true)) return;
  manager_.stopping(fmt::format("unmounting {}", saved_.mount_point));
}

// Not before a worker serves, nor once it was told to end.
bool Supervisor::watchdog_runs() const {
  return alive_every(manager_) > 0 && serving_ && !ending_;
}

// Polls: the kernel sends no event when a worker is stuck.
TimeNs Supervisor::poll_timeout() const {
  TimeNs period = dying_ ? kDyingCheckPeriod : kCheckPeriod;
  return watchdog_runs() ? std::min(period, alive_every(manager_)) : period;
}

// Counts time-outs instead of reading a clock: while both processes are stopped (SIGSTOP, suspend)
// the worker is not at fault.
void Supervisor::count_silence() {
  if (!watchdog_runs()) return;
  silence_ += poll_timeout();
  if (silence_ < kMaxSilence * alive_every(manager_)) return;
  hung_ = true;
  serving_ = false;
  ::kill(worker_, SIGKILL);
}

std::string Supervisor::serving() const {
  std::string text = fmt::format("serving {}, worker {}", saved_.mount_point, worker_);
  if (deaths_ == 0) return text;
  return text + fmt::format("; {} died, the last of {}", deaths_, saved_.death.cause);
}

void Supervisor::note_death(std::string cause) {
  saved_.death.pid = worker_;
  saved_.death.monotonic = monotonic_ns();
  ++deaths_;
  if (std::exchange(hung_, false)) cause = "hanging";
  cause.resize(std::min(cause.size(), sizeof saved_.death.cause - 1));
  std::memcpy(saved_.death.cause, cause.c_str(), cause.size() + 1);
}

// No delay after the first early death, then one that doubles.
bool Supervisor::back_off(TimeNs lived) {
  early_deaths_ = lived < kEarly ? early_deaths_ + 1 : 0;
  if (early_deaths_ >= kMaxEarlyDeaths) return false;
  if (early_deaths_ > 1) {
    pollfd signals{signals_.get(), POLLIN, 0};
    ::poll(&signals, 1, 2 << early_deaths_);  // milliseconds
    for (signalfd_siginfo info; ::read(signals_.get(), &info, sizeof info) == sizeof info;) {
      if (info.ssi_signo != SIGCHLD) begin_shutdown();
    }
  }
  return true;
}

int Supervisor::give_up(const std::string& why) {
  std::fprintf(stderr, "rocefs: %s\n", why.c_str());
  ending_ = true;
  manager_.stopping(why);
  ::syslog(LOG_DAEMON | LOG_ERR, "%s: %s; unmounting", saved_.mount_point, why.c_str());
  end_mount();
  return 1;
}

// A mount that is not cut and has no worker would block every access: it is looked up in the mount
// table alone.
void Supervisor::end_mount() {
  listener_.reset();
  descriptor_.reset();
  kept_.clear();
  if (!saved_.mount_point[0]) return;
  if (!cutoff_ || cutoff_.cut()) {
    unmount_dead(saved_.mount_point);
  } else {
    unmount_own(saved_.mount_point, saved_.session.device);
  }
}

}  // namespace rocefs
