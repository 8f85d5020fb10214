#include "core/process/file_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/passed_descriptors.h"
#include "core/base/shares.h"
#include "core/process/file_helper.h"

namespace rocefs {
namespace {

constexpr size_t kMaxHelpers = 1024;
constexpr size_t kMaxHelpersOfUser = 256;
constexpr size_t kForPrivileged = 64;  // out of kMaxHelpers
constexpr long kMaxStuckOfUser = 4;    // per user
constexpr TimeNs kDying = kSecond;     // helpers killed longer ago are stuck
constexpr size_t kMaxOrderDescriptors = 4;

// Drops everything inherited from the daemon: its mount, its clients' sockets, its terminal.
Fd keep_only(Fd socket) {
  constexpr int kPlace = 3;
  if (socket.get() != kPlace && ::dup2(socket.get(), kPlace) != kPlace) ::_exit(1);
  (void)socket.release();
  ::closefrom(kPlace + 1);
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {0, 1, 2}) {
    if (null < 0 || ::dup2(null, fd) < 0) ::close(fd);
  }
  if (null > 2) ::close(null);
  return Fd(kPlace);
}

class Agent {
 public:
  explicit Agent(Fd control) : control_(std::move(control)) {
    sigset_t every, child;
    sigfillset(&every);
    ::sigprocmask(SIG_SETMASK, &every, nullptr);
    for (int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ended_ = Fd(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  // Runs until the daemon has gone.
  void run() {
    std::vector<pollfd> watched;
    for (;;) {
      watched = {{control_.get(), POLLIN, 0}, {ended_.get(), POLLIN, 0}};
      for (const Helper& helper : helpers_) {
        watched.push_back({helper.killed ? -1 : helper.socket.get(), 0, 0});
      }
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
      for (size_t i = 2; i < watched.size(); ++i) {
        if (watched[i].revents) kill(helpers_[i - 2]);
      }
      if (watched[1].revents) reap();
      if (watched[0].revents && !take_order()) return;
    }
  }

 private:
  struct Helper {
    pid_t pid;
    uid_t uid;
    Fd socket;  // the helper's end: it hangs up when the daemon lets go of its own
    bool killed = false;
  };

  // Helpers of one user.
  struct User {
    size_t open = 0;
    std::map<pid_t, TimeNs> dying;  // since when
  };

  void kill(Helper& helper) {
    helper.killed = true;
    User& user = users_[helper.uid];
    --user.open;
    user.dying[helper.pid] = monotonic_ns();
    ::kill(helper.pid, SIGKILL);
  }

  void forget(const Helper& helper) {
    auto user = users_.find(helper.uid);
    if (user->second.dying.erase(helper.pid) == 0) --user->second.open;
    if (user->second.open == 0 && user->second.dying.empty()) users_.erase(user);
  }

  void reap() {
    for (signalfd_siginfo info; ::read(ended_.get(), &info, sizeof info) == sizeof info;) {
    }
    for (pid_t pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;) {
      auto ended = std::find_if(helpers_.begin(), helpers_.end(),
                                [pid](const Helper& helper) { return helper.pid == pid; });
      if (ended == helpers_.end()) continue;
      forget(*ended);
      helpers_.erase(ended);
    }
  }

  FileReply::Why refusal(uid_t uid) const {
    size_t kept = is_privileged(uid) ? 0 : kForPrivileged;
    if (helpers_.size() + kept >= kMaxHelpers) return FileReply::kTooMany;
    auto user = users_.find(uid);
    if (user == users_.end()) return FileReply::kNone;
    TimeNs since = monotonic_ns() - kDying;
    auto stuck = std::count_if(user->second.dying.begin(), user->second.dying.end(),
                               [&](const auto& one) { return one.second < since; });
    if (stuck >= kMaxStuckOfUser) return FileReply::kStuck;
    return user->second.open >= kMaxHelpersOfUser ? FileReply::kTooMany : FileReply::kNone;
  }

  bool take_order() {
    AgentOrder order;
    std::array<Fd, kMaxOrderDescriptors> taken;
    ssize_t got = receive_message(control_.get(), &order, sizeof order, taken, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!taken[1]) return true;  // no room for descriptors: the daemon sees its end closed
    FileReply::Why why = refusal(order.uid);
    if (why == FileReply::kNone && begin(order.uid, taken)) return true;
    FileReply reply{EAGAIN, why == FileReply::kNone ? FileReply::kNoProcess : why, 0};
    (void)!::send(taken[0].get(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
  }

  bool begin(uid_t uid, std::array<Fd, kMaxOrderDescriptors>& taken) {
    pid_t agent = ::getpid();
    pid_t pid = ::fork();
    if (pid < 0) return false;
    if (pid == 0) {
      control_.reset();
      ended_.reset();
      helpers_.clear();
      help_with_file(std::move(taken[0]), std::move(taken[1]), std::move(taken[2]),
                     std::move(taken[3]), agent);
    }
    helpers_.push_back({pid, uid, std::move(taken[0])});
    ++users_[uid].open;
    return true;
  }

  Fd control_;
  Fd ended_;
  std::vector<Helper> helpers_;
  std::map<uid_t, User> users_;
};

}  // namespace

Result<FileAgent> FileAgent::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errorf(errno, "cannot start the process that opens files: {}", std::strerror(errno));
  }
  Fd ours(ends[0]), theirs(ends[1]);
  pid_t daemon = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0)
    return errorf(errno, "cannot start the process that opens files: {}", std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != daemon) ::_exit(1);
    ::prctl(PR_SET_NAME, "rocefs-files");
    (void)!::chdir("/");
    Agent(keep_only(std::move(theirs))).run();
    ::_exit(0);
  }
  return FileAgent(std::move(ours), pid);
}

FileAgent::~FileAgent() {
  if (!socket_) return;  // moved from
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

int FileAgent::send(const AgentOrder& order, int socket, int memory, int root, int directory) {
  const int all[kMaxOrderDescriptors] = {socket, memory, root, directory};
  std::span<const int> passed(all, root < 0 ? 2 : 4);
  return send_message(socket_.get(), &order, sizeof order, passed, MSG_DONTWAIT);
}

}  // namespace rocefs
