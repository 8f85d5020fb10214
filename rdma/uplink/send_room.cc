#include "rdma/uplink/send_room.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace rocefs {

// A socket takes a datagram of any size while it holds less than its limit
// (sock_alloc_send_pskb()).
void SendRoom::ask(int fd) {
  int limit = 0, held = 0;
  socklen_t length = sizeof limit;
  (void)::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &limit, &length);
  (void)::ioctl(fd, SIOCOUTQ, &held);
  limit_ = static_cast<size_t>(limit);
  held_ = static_cast<size_t>(held);
}

}  // namespace rocefs
