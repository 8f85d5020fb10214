#include "tools/rocefs/netlink/proxy.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/fd.h"
#include "core/base/passed_descriptors.h"
#include "core/process/open_below.h"
#include "tools/rocefs/netlink/filter.h"
#include "tools/rocefs/netlink/socket_server.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)  // Linux 5.19
#endif

namespace rocefs {
namespace {

// Installs the filter; returns its listener for a flag NEW_LISTENER, else 0; -1 with errno.
int install(std::vector<sock_filter> code, unsigned long flags) {
  sock_fprog filter{static_cast<unsigned short>(code.size()), code.data()};
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter));
}

// Without WAIT_KILLABLE_RECV a signal may interrupt an answer that was taken from the queue.
int install_listener() {
  int listener = install(notifying_filter(),
                         SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
  if (listener >= 0 || errno != EINVAL) return listener;
  return install(notifying_filter(), SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

Result<void> refuse() {
  if (install(refusing_filter(), 0) < 0) return errorf(errno, "seccomp: {}", std::strerror(errno));
  return {};
}

// Whether an outer `rocefs enter` or `rocefs host` answers already.
bool is_answered() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  return socket.get() >= kLowestSocket && socket.get() <= kHighestSocket;
}

// Whether a container's seccomp profile lets the server look at askers: a half answer would be
// worse than a refusal, after which libibverbs looks into /sys.
bool can_look() {
  Fd own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!own) return false;
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, own.get(), own.get(), 0)));
  Fd root = open_below(AT_FDCWD, "/", O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT);
  Fd memory(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  char from = 1, to = 0;
  auto address = static_cast<off_t>(reinterpret_cast<uintptr_t>(&to));
  return copy && root && ::pwrite(memory.get(), &from, 1, address) == 1 &&
         ::pread(memory.get(), &from, 1, address) == 1;
}

// Empty if the other end was closed.
Fd receive_descriptor(int socket) {
  char octet;
  Fd descriptor[1];
  (void)receive_message(socket, &octet, 1, descriptor);
  return std::move(descriptor[0]);
}

// Keeps nothing of the command: no pipe, terminal, group or directory.
[[noreturn]] void serve(Fd door) {
  ::prctl(PR_SET_NAME, "rocefs-netlink");
  ::setsid();
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::geteuid() == 0) (void)::setgroups(0, nullptr);
  (void)!::chdir("/");
  ::close(0);
  if (::open("/dev/null", O_RDWR) == 0) {
    ::dup2(0, 1);
    ::dup2(0, 2);
  }
  constexpr int kDoor = 3;
  if (door.get() != kDoor) ::dup2(door.get(), kDoor);
  ::close_range(kDoor + 1, ~0u, 0);
  Fd listener = receive_descriptor(kDoor);
  ::close(kDoor);
  if (!listener) ::_exit(0);
  auto* server = new SocketServer(std::move(listener));
  server->run();
  ::_exit(0);  // with all threads: one may never come back from a user's file
}

// Forks twice: the command must not find a child that it did not make.
bool start_server(Fd door, Fd& other) {
  pid_t child = ::fork();
  if (child == 0) {
    other.reset();
    if (::fork() == 0) serve(std::move(door));
    ::_exit(0);
  }
  if (child < 0) return false;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

Result<void> answer_rdma_netlink() {
  if (!can_look()) return refuse();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return refuse();
  Fd ours(ends[0]), door(ends[1]);
  if (!start_server(std::move(door), ours)) return refuse();
  Fd listener(install_listener());
  if (!listener) {
    if (errno == EBUSY && is_answered()) return {};
    return refuse();
  }
  constexpr char kOctet = 0;
  if (send_message(ours.get(), &kOctet, 1, listener.get()) != 0) {
    return Error{ECHILD, "the server of RDMA netlink has died"};
  }
  return {};
}

}  // namespace rocefs
