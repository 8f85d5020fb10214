// ICMP errors for datagrams that a socket has sent: the kernel keeps them in the socket's error
// queue (ip(7), IP_RECVERR), and fails one send for each.
#pragma once

#include <cstdint>
#include <string>

#include "rdma/packet/verbs.h"

namespace rocefs {

struct IcmpErrors {
  uint32_t refused = 0;      // port unreachable: no receiver at the far end
  uint32_t unreachable = 0;  // host or network unreachable, or forbidden
  uint32_t too_long = 0;     // fragmentation needed
  Ip to{};                   // destination of the last one
  std::string why;           // the last one, for the log
  bool any() const { return refused + unreachable + too_long > 0; }
};

// Keeps the errors of a sending socket from now on.
void keep_icmp_errors(int fd, bool ipv6);
// Takes queued errors, at most 64 at a time, without waiting. Discards errors of the kernel itself,
// such as a packet longer than a known MTU: the send has reported them.
IcmpErrors take_icmp_errors(int fd);

}  // namespace rocefs
