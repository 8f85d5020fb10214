// What is said of a node and its ports by the manager's agents and by the administrator alike, as
// the octets of these attributes.
//
// Each takes an End of the subnet that is: a port that the node has. Core thread.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/port_speed.h"
#include "mad_cc/net/subnet.h"

namespace rocefs::mad {

// 14.2.5.3: seen from this port; of a switch the port GUID is that of port 0, whichever port it is.
using NodeInfo = std::array<uint8_t, 40>;
NodeInfo node_info(const Subnet& subnet, Subnet::End at);

// 14.2.5.2: what of the description fits, then zeros.
using NodeDescription = std::array<uint8_t, 64>;
NodeDescription node_description(const SubnetState& state, size_t node);

// 14.2.5.6. A port supports the speed that its cable is set to, and what is slower, so that no
// reader takes a slow cable for one that has fallen back.
using PortInfo = std::array<uint8_t, 64>;
PortInfo port_info(const Subnet& subnet, const SubnetState& state, Subnet::End at);
inline constexpr size_t kPortInfoCapabilities = 20;  // octet where CapabilityMask begins

// 14.2.5.4, of a switch.
using SwitchInfo = std::array<uint8_t, 20>;
SwitchInfo switch_info(const Subnet& subnet);
inline constexpr uint16_t kLinearTableSize = 0xc000;  // LIDs up to 0xbfff are unicast (4.1.3)

// 14.2.5.5: a block of 8; the first GUID of block 0 is the port's, all others are 0.
using GuidInfo = std::array<uint8_t, 64>;
inline constexpr uint8_t kGuidCapacity = 8;
GuidInfo guid_info(const Subnet& subnet, Subnet::End at, uint32_t block);

// 14.2.5.13: the manager, master of its subnet.
using SmInfo = std::array<uint8_t, 21>;
SmInfo sm_info(const Subnet& subnet);

// 14.2.5.6: MTU codes: 1 is 256, 5 is 4096.
uint8_t mtu_code(uint16_t mtu);
// 15.2.5.16: the code of the slowest rate of a link that carries this one; see port_speed().
uint8_t rate_code(uint64_t bps);
// How fast that code is; 0 for codes that there are not.
uint64_t rate_mbps(uint8_t code);

// 4.096 us * 2^18, about a second: how long packets may be under way, and answers take.
inline constexpr uint8_t kLifetimeCode = 18;
// Of port 0 of a switch, which has no cable.
inline constexpr uint64_t kManagementPortBps = 10'000'000'000;
// Of that port, towards its cable.
uint64_t rate_bps(const Subnet& subnet, const SubnetState& state, Subnet::End at);

}  // namespace rocefs::mad
