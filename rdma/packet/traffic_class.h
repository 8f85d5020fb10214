// Traffic class of the IP header: the priority at which ports and switches queue a packet, and ECN
// (RFC 3168). The ICRC leaves it out, so that switches may mark.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rdma/packet/packet.h"

namespace rocefs {

inline constexpr size_t kPriorities = 8;

// Upper three bits of the DSCP, the default of switches and NICs that trust the DSCP.
inline size_t priority_of_class(uint8_t traffic_class) {
  return traffic_class >> 5;
}

enum class Ecn : uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kCongested = 3 };

// DSCP and ECN.
inline uint8_t traffic_class_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  if (header[0] >> 4 != 6) return header[1];
  return static_cast<uint8_t>(header[0] << 4 | header[1] >> 4);
}
inline size_t priority_of(const Packet& packet) {
  return priority_of_class(traffic_class_of(packet));
}
inline Ecn ecn_of(const Packet& packet) {
  return static_cast<Ecn>(traffic_class_of(packet) & 3);
}
// Marks congestion experienced. The packet's transport must be ECN-capable.
void mark_congested(Packet& packet);

}  // namespace rocefs
