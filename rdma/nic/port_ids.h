// GUIDs and GIDs of a port, as a RoCE NIC derives them from the port's addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/topology.h"
#include "rdma/packet/packet.h"
#include "rdma/wire/ip.h"

namespace rocefs {

// GIDs by index: 0 link-local from the MAC, 1 IPv4, 2 global IPv6 if there is one.
std::vector<Ip> gids_of(const PortSpec& spec);
// RoCE's MTU is the interface's minus the longest headers (iboe_get_mtu()).
inline constexpr uint32_t kRoceHeaders = 40 + 8 + 12 + 4 + 28 + 4;
// Path MTU that an interface of that MTU carries; 0: none.
constexpr uint32_t path_mtu_of(uint32_t interface_mtu) {
  for (uint32_t mtu = kMaxMtu; valid_mtu(mtu); mtu /= 2) {
    if (mtu + kRoceHeaders <= interface_mtu) return mtu;
  }
  return 0;
}
// EUI-64 of the MAC. The node GUID is that of port 1.
uint64_t guid_of(const PortSpec& spec);

}  // namespace rocefs
