// Probes of the kernel that a test runs on: a case that needs more than it has is skipped. An
// emulator of another machine (qemu-user) has less than the kernel below it, and so have old
// kernels and some containers.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/base/fd.h"

namespace rocefs::test {

// Whether the kernel is this program's machine's: /proc shows the read(2) of itself with the number
// that the program knows. Below an emulator it has another machine's numbers of system calls and
// flags of open(2).
inline bool kernel_is_ours() {
  Fd self(::open("/proc/self/syscall", O_RDONLY | O_CLOEXEC));
  char text[256] = {};
  long number = -1;
  return self && ::read(self.get(), text, sizeof text - 1) > 0 &&
         std::sscanf(text, "%ld", &number) == 1 && number == SYS_read;
}

// Mounts as descriptors, Linux 5.2.
inline bool has_open_tree() {
  errno = 0;
  Fd tree(::open_tree(AT_FDCWD, "/", OPEN_TREE_CLOEXEC));
  return tree || errno != ENOSYS;
}

// Linux 5.6.
inline bool has_openat2() {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  Fd root(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how)));
  return root || errno != ENOSYS;
}

// Numbers of mounts that are given once: STATX_MNT_ID_UNIQUE, Linux 6.8.
inline bool numbers_mounts() {
  constexpr unsigned kUnique = 0x4000;
  struct statx told {};
  return ::statx(AT_FDCWD, "/", 0, kUnique, &told) == 0 && (told.stx_mask & kUnique) != 0 &&
         told.stx_mnt_id != 0;
}

// Whether an ioctl(2) reaches the file although nobody knows its number.
inline bool passes_ioctls() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  Fd out(ends[0]), in(ends[1]);
  return ::ioctl(out.get(), _IO('r', 77)) == -1 && errno == ENOTTY;
}

inline bool has_option(int domain, int type, int level, int option) {
  Fd socket(::socket(domain, type | SOCK_CLOEXEC, 0));
  uint64_t value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(socket.get(), level, option, &value, &size) == 0;
}

// Whether a receiver learns that more descriptors came than it has room for.
inline bool tells_cut_descriptors() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  Fd from(ends[0]), to(ends[1]);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof ends)] = {};
  char octet = 0;
  iovec part{&octet, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr header{CMSG_LEN(sizeof ends), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(control, &header, sizeof header);
  std::memcpy(control + CMSG_LEN(0), ends, sizeof ends);
  if (::sendmsg(from.get(), &message, 0) != 1) return false;
  message.msg_controllen = CMSG_LEN(sizeof(int));
  if (::recvmsg(to.get(), &message, MSG_CMSG_CLOEXEC) != 1) return false;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    std::array<int, 2> got{-1, -1};
    std::memcpy(got.data(), CMSG_DATA(at), std::min(sizeof got, at->cmsg_len - CMSG_LEN(0)));
    for (int fd : got) Fd(fd).reset();
  }
  return (message.msg_flags & MSG_CTRUNC) != 0;
}

// Whether one process may trace another, as debuggers do.
inline bool has_ptrace() {
  pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  bool traces = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return traces;
}

// Whether programs like this one can be started: not where only the emulator starts them.
inline bool starts_programs(const std::string& program) {
  pid_t pid = ::fork();
  if (pid == 0) {
    Fd nothing(::open("/dev/null", O_RDWR));
    for (int fd : {0, 1, 2}) ::dup2(nothing.get(), fd);
    ::execl(program.c_str(), program.c_str(), "--version", nullptr);
    ::_exit(errno == ENOEXEC ? 126 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 126;
}

// Whether posix_spawn(3) tells that there is no such program.
inline bool tells_failed_spawns() {
  char name[] = "/nonexistent/program";
  char* arguments[] = {name, nullptr};
  pid_t pid = 0;
  int failed = ::posix_spawn(&pid, name, nullptr, nullptr, arguments, ::environ);
  if (failed == 0) ::waitpid(pid, nullptr, 0);
  return failed == ENOENT;
}

}  // namespace rocefs::test
