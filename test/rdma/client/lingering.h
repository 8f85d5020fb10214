// A descriptor whose close(2) blocks for minutes: a TCP socket that lingers over bytes that its
// peer does not read.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "core/base/fd.h"

namespace rocefs::test {

// Closing the last copy of fd() blocks until this object is destroyed: it holds the other end.
class LingeringSocket {
 public:
  LingeringSocket() {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ::bind(listener.get(), generic, size);
    ::listen(listener.get(), 1);
    ::getsockname(listener.get(), generic, &size);
    fd_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd_.get(), generic, size) != 0) return;
    peer_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    constexpr linger kMinutes{1, 600};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &kMinutes, sizeof kMinutes);
    std::vector<char> bytes(1 << 16);
    while (::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  ~LingeringSocket() { peer_.reset(); }  // first

  // Closes this copy; the last one waits.
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }
  bool made() const { return static_cast<bool>(peer_); }

 private:
  Fd fd_, peer_;
};

// A message with these descriptors, at once.
inline bool send_descriptors(int socket, const void* data, size_t size,
                             const std::vector<int>& fds) {
  iovec part{const_cast<void*>(data), size};
  std::vector<char> space(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  *header = {CMSG_LEN(fds.size() * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

}  // namespace rocefs::test
