#include "pcc/card/card_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/base/passed_descriptors.h"
#include "core/process/stranger_socket.h"
#include "pcc/card/messages.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

extern char** environ;

namespace rocefs {
namespace {

constexpr int kCardSocket = 3;  // fixed in mango-pccd
constexpr size_t kMaxDescriptors = 2;
constexpr int kPatienceMs = 100;
// Environment kept for another user's process: search path, locale, sanitizer options.
constexpr std::string_view kForStrangers[] = {
    "PATH=", "LANG=", "LC_", "TZ=", "ASAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS="};

int kill_by(int pidfd) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0));
}

// Kills the process group; children that left the group survive. The pid is valid until the process
// is reaped.
void kill_group(pid_t pid, int pidfd) {
  siginfo_t info{};
  int waitable = ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info,
                          WEXITED | WNOHANG | WNOWAIT);
  if (waitable == 0) ::kill(-pid, SIGKILL);
}

// Exit status; si_pid is 0 while the process runs.
std::optional<siginfo_t> reap(int pidfd) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info,
               WEXITED | WNOHANG) != 0) {
    return std::nullopt;  // reaped elsewhere
  }
  return info;
}

// Reaps a killed process from the loop. Without the loop, at the end of the daemon, it waits for a
// short time, so that no zombie is left.
class Grave {
 public:
  static void dig(PollLoop& loop, Fd pidfd) {
    int watched = pidfd.get();
    auto grave = std::make_shared<Grave>(std::move(pidfd));
    if (grave->fill()) return;
    loop.watch(watched, [&loop, grave, watched] {
      if (grave->fill()) loop.unwatch(watched);
    });
  }
  explicit Grave(Fd pidfd) : pidfd_(std::move(pidfd)) {}
  ~Grave() {
    pollfd end{pidfd_.get(), POLLIN, 0};
    if (::poll(&end, 1, kPatienceMs) == 1) reap(pidfd_.get());
  }
  Grave(const Grave&) = delete;
  Grave& operator=(const Grave&) = delete;

 private:
  bool fill() {
    std::optional<siginfo_t> end = reap(pidfd_.get());
    return !end || end->si_pid != 0;
  }

  Fd pidfd_;
};

// Attributes of the new process: default signals, no inherited descriptors, a session of its own,
// so that Ctrl-C reaches the daemon only and the process has no terminal.
struct Birth {
  Birth() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~Birth() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Birth(const Birth&) = delete;
  Birth& operator=(const Birth&) = delete;

  void prepare(int socket, int output) {
    // The output first: it may have the number that the socket is to have.
    for (int each : {STDOUT_FILENO, STDERR_FILENO}) {
      ::posix_spawn_file_actions_adddup2(&files, output, each);
    }
    ::posix_spawn_file_actions_adddup2(&files, socket, kCardSocket);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&files, kCardSocket + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

std::vector<char*> environment_for(bool stranger) {
  std::vector<char*> chosen;
  for (char** each = environ; each && *each; ++each) {
    bool fits = std::any_of(std::begin(kForStrangers), std::end(kForStrangers),
                            [&](auto name) { return std::string_view(*each).starts_with(name); });
    if (fits || !stranger) chosen.push_back(*each);
  }
  chosen.push_back(nullptr);
  return chosen;
}

}  // namespace

Result<std::unique_ptr<CardProcess>> CardProcess::start(PollLoop& loop, const Program& program,
                                                        Listener& listener) {
  auto failed = [&](int code) {
    return errorf(EIO, "{} cannot be started: {}", program.path, std::strerror(code));
  };
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return failed(errno);
  Fd ours(ends[0]), theirs(ends[1]);
  // Room for the largest message in both directions.
  for (int end : ends) {
    int room = 2 * static_cast<int>(kMaxCardMessage);
    ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  }
  std::string name = std::filesystem::path(program.path).filename();
  std::vector<char*> arguments{name.data()};
  for (const std::string& argument : program.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  std::unique_ptr<OutputLines> output =
      OutputLines::make(loop, [&listener](std::string_view line) { listener.card_printed(line); });
  if (!output) return failed(errno);
  Fd printed = output->take_end();
  Birth birth;
  birth.prepare(theirs.get(), printed.get());
  std::vector<char*> environment = environment_for(program.stranger);
  pid_t pid = -1;
  int code = ::posix_spawn(&pid, program.path.c_str(), &birth.files, &birth.attributes,
                           arguments.data(), environment.data());
  if (code != 0) return failed(code);
  // Not reaped yet, so the pid is still valid.
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    code = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return failed(code);
  }
  return std::unique_ptr<CardProcess>(
      new CardProcess(loop, listener, pid, std::move(pidfd), std::move(ours), std::move(output)));
}

CardProcess::CardProcess(PollLoop& loop, Listener& listener, pid_t pid, Fd pidfd, Fd socket,
                         std::unique_ptr<OutputLines> output)
    : loop_(loop),
      listener_(listener),
      pid_(pid),
      pidfd_(std::move(pidfd)),
      socket_(std::move(socket), Closer(), 0),
      output_(std::move(output)),
      grace_(loop, [this] { kill_by(pidfd_.get()); }),
      buffer_(kMaxCardMessage) {
  loop_.watch(socket_.get(), [this] { take(kMaxMessagesAtOnce); });
  loop_.watch(pidfd_.get(), [this] { bury(); });
}

CardProcess::~CardProcess() {
  *alive_ = false;
  unwatch_socket();
  if (!pidfd_) return;
  loop_.unwatch(pidfd_.get());
  kill_group(pid_, pidfd_.get());
  kill_by(pidfd_.get());
  Grave::dig(loop_, std::move(pidfd_));
}

bool CardProcess::send(std::string_view message, std::span<const int> descriptors) {
  if (!socket_ || message.size() > kMaxCardMessage) return false;
  return send_message(socket_.get(), message.data(), message.size(), descriptors, MSG_DONTWAIT) ==
         0;
}

void CardProcess::await_end() {
  grace_.arm(kGrace);
}

bool CardProcess::take(int most) {
  std::shared_ptr<bool> alive = alive_;
  for (int i = 0; socket_ && i < most; ++i) {
    using Kind = StrangerMessage::Kind;
    std::span<uint8_t> room(reinterpret_cast<uint8_t*>(buffer_.data()), buffer_.size());
    StrangerMessage message = receive_from_stranger(socket_, room, false);
    if (message.kind == Kind::kNothing) return true;
    if (message.kind == Kind::kEnd) {
      unwatch_socket();
      await_end();
      return true;
    }
    bool misfit = message.kind == Kind::kMisfit;
    if (misfit) unwatch_socket();
    bool whole = !misfit && message.size <= buffer_.size();
    listener_.card_said({buffer_.data(), whole ? message.size : 0});
    if (!*alive) return false;
  }
  return true;
}

void CardProcess::unwatch_socket() {
  if (!socket_) return;
  loop_.unwatch(socket_.get());
  socket_.hang_up();
}

// Delivers the messages received before the end, at most what the socket holds; later ones, of its
// children, are dropped.
void CardProcess::bury() {
  kill_group(pid_, pidfd_.get());
  if (!take(kMaxMessagesHeld)) return;
  std::optional<siginfo_t> end = reap(pidfd_.get());
  if (end && end->si_pid == 0) return;  // still running
  loop_.unwatch(pidfd_.get());
  pidfd_.reset();
  unwatch_socket();
  grace_.disarm();
  output_->finish();
  bool by_signal = end && end->si_code != CLD_EXITED;
  std::string how = "ended";
  if (by_signal) {
    const char* name = sigabbrev_np(end->si_status);
    how = name ? fmt::format("died of SIG{}", name)
               : fmt::format("died of signal {}", end->si_status);
  } else if (end) {
    how = fmt::format("ended with exit status {}", end->si_status);
  }
  using End = Listener::End;
  listener_.card_ended(how, !by_signal                   ? End::kExit
                            : end->si_code == CLD_DUMPED ? End::kCore
                                                         : End::kSignal);
}

std::string own_pccd() {
  char program[PATH_MAX];
  ssize_t size = ::readlink("/proc/self/exe", program, sizeof program);
  if (size <= 0) return "mango-pccd";
  std::filesystem::path self(std::string_view(program, static_cast<size_t>(size)));
  std::filesystem::path beside = self.parent_path() / "mango-pccd";
  std::error_code failed;
  // Test programs stand beside bin/.
  return std::filesystem::exists(beside, failed)
             ? beside
             : self.parent_path().parent_path() / "bin/mango-pccd";
}

}  // namespace rocefs
