// Ethernet: the overhead per packet, and the header of the frames of hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rocefs {

// Octets per packet on the wire: preamble 8, header 14, FCS 4, gap 12.
inline constexpr uint64_t kEthernetOverhead = 38;

inline constexpr size_t kEthernetHeader = 14;   // addresses and type
inline constexpr size_t kMinEthernetData = 46;  // octets between header and FCS, at least
inline constexpr size_t kMaxEthernetData =
    4196;  // at most: the MTU of an interface, and a VLAN tag

using Mac = std::array<uint8_t, 6>;

// EtherTypes.
inline constexpr uint16_t kTypeIpv4 = 0x0800, kTypeArp = 0x0806, kTypeVlan = 0x8100,
                          kTypeIpv6 = 0x86dd;

}  // namespace rocefs
