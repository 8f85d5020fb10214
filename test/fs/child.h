// Child processes that use the mount, and ordinary users.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "test/fs/mounted.h"

namespace rocefs::test {

// Process that writes to `file` and exits with the errno; a signal that it can catch interrupts its
// write. It closes the server's end, else the connection would live as long as its own request.
inline pid_t start_writer(const Mounted& mounted, const std::string& file,
                          const std::string& text) {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::close(mounted.session->descriptor());
    struct sigaction action {};
    action.sa_handler = [](int) {};
    for (int signal : {SIGUSR1, SIGCHLD, SIGURG}) ::sigaction(signal, &action, nullptr);
    int fd = ::open(file.c_str(), O_WRONLY);
    ::_exit(fd < 0 || ::write(fd, text.data(), text.size()) < 0 ? errno : 0);
  }
  return pid;
}

// State letter as in ps.
inline char state_of(pid_t pid) {
  std::ifstream line("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  line >> number >> name >> state;
  return state.empty() ? '\0' : state[0];
}

inline int status_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

// Makes /dev/fuse accessible to everybody, as on a usual machine, in a mount namespace of this
// process.
inline bool fuse_for_everybody() {
  struct stat device;
  if (::stat("/dev/fuse", &device) != 0) return false;
  if ((device.st_mode & 0666) == 0666) return true;
  std::string node = "/tmp/rocefs-fs-test.fuse." + std::to_string(::getpid());
  bool made = ::unshare(CLONE_NEWNS) == 0 &&
              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mknod(node.c_str(), S_IFCHR, device.st_rdev) == 0 &&
              ::chmod(node.c_str(), 0666) == 0 &&
              ::mount(node.c_str(), "/dev/fuse", nullptr, MS_BIND, nullptr) == 0;
  ::unlink(node.c_str());
  return made && ::access("/dev/fuse", R_OK | W_OK) == 0;
}

// Runs `work` in a process of uid and gid 65534 with a /dev/fuse that it may open. Returns its exit
// status, kCannot if there can be no such process. To be called while this process has one thread.
constexpr int kCannot = 77;
template <class Work>
int as_nobody(Work work) {
  constexpr uid_t kNobody = 65534;
  pid_t pid = ::fork();
  if (pid == 0) {
    bool dropped = fuse_for_everybody() && ::setgroups(0, nullptr) == 0 &&
                   ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                   ::setresuid(kNobody, kNobody, kNobody) == 0 &&
                   ::access("/dev/fuse", R_OK | W_OK) == 0;
    ::_exit(dropped ? work() : kCannot);
  }
  int status = status_of(pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace rocefs::test
