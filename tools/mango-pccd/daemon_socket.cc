#include "tools/mango-pccd/daemon_socket.h"

#include <sys/socket.h>

#include <cerrno>

#include "core/base/passed_descriptors.h"
#include "pcc/card/messages.h"
#include "tools/mango-pccd/last_words.h"

namespace rocefs {

std::optional<DaemonDatagram> receive_datagram() {
  DaemonDatagram datagram;
  datagram.text.resize(kMaxCardMessage);
  ssize_t got = receive_message(kDaemonSocket, datagram.text.data(), datagram.text.size(),
                                datagram.descriptors);
  if (got <= 0) return std::nullopt;
  datagram.text.resize(static_cast<size_t>(got));
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
