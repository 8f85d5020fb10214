#include "tools/rocefs/daemon/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "core/process/close_all_but.h"
#include "fs/mount_point.h"

namespace rocefs {
namespace {

// Only a mount without a server is removed, never that of an instance which has started since.
// Tries for a while: where the connection cannot be cut, it ends with the last process that holds
// it.
void remove_mount(const std::string& mount_point) {
  constexpr int kTries = 20, kBetweenMs = 100;
  for (int i = 0; i < kTries && !unmount_dead(mount_point); ++i) {
    ::poll(nullptr, 0, kBetweenMs);
  }
}

[[noreturn]] void keep_guard(int line, const Cutoff& cutoff) {
  close_all_but(line, cutoff.descriptor() < 0 ? line : cutoff.descriptor());
  (void)!::chdir("/");
  ::prctl(PR_SET_NAME, "rocefs-guard");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);  // only the pipe ends it
  char word;
  ssize_t got;
  do {
    got = ::read(line, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) {
    cutoff.cut();
    remove_mount(cutoff.mount_point());
  }
  ::_exit(0);
}

}  // namespace

Guard::Guard(const Cutoff& cutoff) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  line_ = Fd(ends[1]);
  Fd guards_end(ends[0]);
  pid_t between = ::fork();
  if (between == 0) {
    if (::fork() != 0) ::_exit(0);
    keep_guard(guards_end.get(), cutoff);
  }
  if (between > 0) ::waitpid(between, nullptr, 0);
}

void Guard::dismiss() {
  if (line_) (void)!::write(line_.get(), "", 1);
  line_.reset();
}

}  // namespace rocefs
