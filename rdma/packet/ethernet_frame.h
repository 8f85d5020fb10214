// Ethernet frames as packets. A frame's addresses and type are in Packet::frame. What is between
// Ethernet header and FCS stands in header and payload: of an IP packet the first octets in the
// header, so that traffic class, ECN and the hash of flows are found where a RoCE packet has them;
// of all else everything in the payload. Such a header is on no wire; it reads as not ECN-capable,
// and as the priority of the VLAN tag or best effort. Payload::kind is kFrame, and `sealed` is set.
#pragma once

#include <cstring>
#include <span>

#include "rdma/packet/packet.h"

namespace rocefs {

inline uint16_t ethertype_of(const Packet& frame) {
  return static_cast<uint16_t>(frame.frame->ethernet[12] << 8 | frame.frame->ethernet[13]);
}
// Broadcast and multicast.
inline bool is_group_frame(const Packet& frame) {
  return frame.frame->ethernet[0] & 1;
}

// Makes a packet of a frame, from the Ethernet header on, without FCS; `more` follows `bytes`.
// Null, with nothing taken from the pool, if `bytes` are shorter than the Ethernet header, or the
// frame is longer than kMaxEthernetData.
PacketPtr packet_of_frame(PacketPool& pool, std::span<const uint8_t> bytes,
                          std::span<const uint8_t> more = {});

// Octets between Ethernet header and FCS, without padding to the shortest frame.
inline size_t ethernet_length(const Packet& frame) {
  return size_t{frame.header_len} + frame.payload.length;
}
// Writes them to `out`, which has room for ethernet_length().
inline void copy_data(const Packet& frame, uint8_t* out) {
  std::memcpy(out, frame.header.data(), frame.header_len);
  std::memcpy(out + frame.header_len, frame.frame->bytes.data(), frame.payload.length);
}

}  // namespace rocefs
