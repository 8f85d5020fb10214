// GUIDs and GIDs of a port, as a RoCE NIC derives them from the port's addresses.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/topology.h"
#include "rdma/wire/ip.h"

namespace rocefs {

// GIDs by index: 0 link-local from the MAC, 1 IPv4, 2 global IPv6 if there is one.
std::vector<Ip> gids_of(const PortSpec& spec);
// EUI-64 of the MAC. The node GUID is that of port 1.
uint64_t guid_of(const PortSpec& spec);

}  // namespace rocefs
