// UDP addresses as socket(7) has them.
#pragma once

#include <cstdint>

#include "rdma/packet/datagram.h"

struct sockaddr;
struct sockaddr_storage;

namespace rocefs {

// Returns the length.
uint32_t to_sockaddr(const UdpAddress& address, sockaddr_storage& out);
// False for what is no internet address.
bool from_sockaddr(const sockaddr& in, UdpAddress& out);

}  // namespace rocefs
