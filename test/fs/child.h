// Child processes that use the mount, and ordinary users.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "test/fs/mounted.h"

namespace rocefs::test {

// A process that writes to `file` and ends with the errno; a signal that it can catch interrupts
// its write. It lets go of the server's end, or the connection would live as long as its own
// request.
inline pid_t start_writer(const Mounted& mounted, const std::string& file,
                          const std::string& text) {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::close(mounted.session->descriptor());
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
    int fd = ::open(file.c_str(), O_WRONLY);
    ::_exit(fd < 0 || ::write(fd, text.data(), text.size()) < 0 ? errno : 0);
  }
  return pid;
}

inline int status_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

// Runs `work` in a process of uid and gid 65534; its result is the exit status. To be called while
// this process has one thread.
template <class Work>
int as_nobody(Work work) {
  constexpr uid_t kNobody = 65534;
  pid_t pid = ::fork();
  if (pid == 0) {
    bool dropped = ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                   ::setresuid(kNobody, kNobody, kNobody) == 0;
    ::_exit(dropped ? work() : 127);
  }
  int status = status_of(pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace rocefs::test
