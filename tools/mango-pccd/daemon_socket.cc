#include "tools/mango-pccd/daemon_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "pcc/card/messages.h"
#include "tools/mango-pccd/last_words.h"

namespace rocefs {

std::optional<DaemonDatagram> receive_datagram() {
  DaemonDatagram datagram;
  datagram.text.resize(kMaxCardMessage);
  union {
    cmsghdr header;
    char bytes[CMSG_SPACE(DaemonDatagram::kDescriptors * sizeof(int))];
  } space{};
  iovec part{datagram.text.data(), datagram.text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &space;
  message.msg_controllen = sizeof space;
  ssize_t got;
  do {
    got = ::recvmsg(kDaemonSocket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  datagram.text.resize(static_cast<size_t>(got));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    size_t held = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < held; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
      datagram.descriptors[i] = Fd(descriptor);
    }
  }
  return datagram;
}

void send_datagram(std::string_view text) {
  while (::send(kDaemonSocket, text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

bool try_send_datagram(std::string_view text) {
  return ::send(kDaemonSocket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace rocefs
