// Ethernet's overhead per packet.
#pragma once

#include <cstdint>

namespace rocefs {

// Octets per packet on the wire: preamble 8, header 14, FCS 4, gap 12.
inline constexpr uint64_t kEthernetOverhead = 38;

}  // namespace rocefs
