// Attributes of a node and its ports in wire format, for the SMA and the administrator.
//
// `at` must be an existing port of the subnet. Core thread.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/port_speed.h"
#include "mad_cc/net/subnet.h"

namespace rocefs::mad {

// Attributes of SMPs (14.2.5, table 116). The others are optional and no node has them: notices,
// vendors' diagnostics, LEDs; VLArbitration is for ports with more than one data VL,
// RandomForwardingTable for switches with such a table.
enum SmpAttribute : uint16_t {
  kNodeDescription = 0x10,
  kNodeInfo = 0x11,
  kSwitchInfo = 0x12,
  kGuidInfo = 0x14,
  kPortInfo = 0x15,
  kPKeyTable = 0x16,
  kSlToVlTable = 0x17,
  kLinearTable = 0x19,
  kMulticastTable = 0x1b,
  kSmInfo = 0x20,
};

// NodeInfo (14.2.5.3), as seen from port `at`. PortGUID of a switch is always the GUID of port 0.
using NodeInfo = std::array<uint8_t, 40>;
NodeInfo node_info(const Subnet& subnet, Subnet::End at);

// NodeDescription (14.2.5.2), truncated or padded with zeros.
using NodeDescription = std::array<uint8_t, 64>;
NodeDescription node_description(const SubnetState& state, size_t node);

// PortInfo (14.2.5.6). A port supports the speed that its cable is set to and all slower ones, so
// that no reader takes a slow cable for one that has fallen back. Writable fields are those that a
// manager has written, if one has.
using PortInfo = std::array<uint8_t, 64>;
PortInfo port_info(const Subnet& subnet, const SubnetState& state, Subnet::End at);
inline constexpr size_t kPortInfoCapabilities = 20;  // octet where CapabilityMask begins

// SwitchInfo (14.2.5.4) of a switch. PortStateChange is set if a port has gone up or down since a
// manager cleared it; before that it is 0.
using SwitchInfo = std::array<uint8_t, 20>;
SwitchInfo switch_info(const Subnet& subnet, const SubnetState& state, size_t node);
inline constexpr uint16_t kLinearTableSize = 0xc000;  // LIDs up to 0xbfff are unicast (4.1.3)
inline constexpr uint16_t kMulticastTableSize = 0x400;
// Whether each port of a switch is up, by number.
SubnetSettings::States port_states(const SubnetState& state, const SubnetNode& node, size_t index);

// GUIDInfo (14.2.5.5): a block of 8. The first GUID of block 0 is the port's, all others are 0.
using GuidInfo = std::array<uint8_t, 64>;
inline constexpr uint8_t kGuidCapacity = 8;
GuidInfo guid_info(const Subnet& subnet, Subnet::End at, uint32_t block);

// SLtoVLMappingTable (14.2.5.8) from an input port to port `at`. Every SL is VL 0, the only one,
// unless a manager has written it.
using SlToVl = std::array<uint8_t, 8>;
SlToVl sl_to_vl(const SubnetState& state, Subnet::End at, uint8_t input);

// The only entry of P_KeyTables (14.2.5.7): full membership.
inline constexpr uint16_t kDefaultPartition = 0xffff;

// SMInfo (14.2.5.13): the emulated manager, master of its subnet unless a program is its manager.
using SmInfo = std::array<uint8_t, 21>;
SmInfo sm_info(const Subnet& subnet, const SubnetState& state);

// MTU codes (14.2.5.6): 1 is 256, 5 is 4096.
uint8_t mtu_code(uint16_t mtu);
// Rate code (15.2.5.16) of the slowest link that carries `bps`; see port_speed().
uint8_t rate_code(uint64_t bps);
// Returns the rate of a code; 0 for a code that does not exist.
uint64_t rate_mbps(uint8_t code);

// PacketLifeTime and response time: 4.096 us * 2^18, about a second.
inline constexpr uint8_t kLifetimeCode = 18;
// Rate of port 0 of a switch, which has no cable.
inline constexpr uint64_t kManagementPortBps = 10'000'000'000;
// Returns the rate of the cable at port `at`.
uint64_t rate_bps(const Subnet& subnet, const SubnetState& state, Subnet::End at);

}  // namespace rocefs::mad
