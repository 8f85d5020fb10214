// The machine's network interfaces, as far as an uplink asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rdma/verbs.h"

namespace rocefs {

struct Interface {
  std::string name;
  uint32_t mtu = 0;  // of IP packets
};
// The one that has this address, or the whole network of it where the kernel takes it so
// (127.0.0.0/8). Nothing if none has.
std::optional<Interface> interface_of(const Ip& address);

// The largest RoCE MTU whose packets fit, with the longest headers; 0 if none does. As Linux has it
// for Soft-RoCE: 1500 carries 1024, 4200 carries 4096.
uint32_t roce_mtu(uint32_t ip_mtu);

}  // namespace rocefs
