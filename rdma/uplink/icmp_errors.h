// What ICMP has said of the datagrams that a socket has sent: the kernel keeps it in the socket's
// error queue (ip(7), IP_RECVERR), and lets one send fail in its place.
#pragma once

#include <cstdint>
#include <string>

#include "rdma/packet/verbs.h"

namespace rocefs {

struct IcmpErrors {
  uint32_t refused = 0;      // nobody listens at the far end's port
  uint32_t unreachable = 0;  // it cannot be reached, or may not
  uint32_t too_long = 0;     // for the path
  Ip to{};                   // where the last of these was going
  std::string why;           // of the last, for people
  bool any() const { return refused + unreachable + too_long > 0; }
};

// Those of a socket that sends are kept from now on.
void keep_icmp_errors(int fd, bool ipv6);
// Takes what is kept, at most 64 at a time, without waiting. What the kernel says of itself, as
// that a packet is longer than an MTU it knows, the send has said already: it is thrown away.
IcmpErrors take_icmp_errors(int fd);

}  // namespace rocefs
