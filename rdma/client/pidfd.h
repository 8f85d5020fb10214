// Processes of clients, by descriptors.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/fd.h"

namespace rocefs {

// Descriptor of the connected process, safe against reuse of its PID. An older kernel gives it only
// by the PID.
inline Fd pidfd_of(int socket, pid_t pid) {
#ifndef SO_PEERPIDFD
  constexpr int SO_PEERPIDFD = 77;
#endif
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) return Fd(pidfd);
  if (errno != ENOPROTOOPT) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace rocefs
