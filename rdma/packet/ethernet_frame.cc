#include "rdma/packet/ethernet_frame.h"

#include <algorithm>

namespace rocefs {
namespace {

// Octets that stand in the packet's header.
size_t header_of(uint16_t type, std::span<const uint8_t> data) {
  bool ipv4 = type == kTypeIpv4 && data.size() >= wire::kIpv4Len && data[0] >> 4 == 4;
  bool ipv6 = type == kTypeIpv6 && data.size() >= wire::kIpv6Len && data[0] >> 4 == 6;
  return ipv4 || ipv6 ? std::min(data.size(), wire::kMaxHeaderLen) : 0;
}

// Traffic class that stands for a frame without IP header: the priority of a VLAN tag (IEEE 802.1Q
// PCP), not ECN-capable.
uint8_t class_of_tag(uint16_t type, std::span<const uint8_t> data) {
  return type == kTypeVlan && !data.empty() ? data[0] & 0xe0 : 0;
}

}  // namespace

PacketPtr packet_of_frame(PacketPool& pool, std::span<const uint8_t> bytes,
                          std::span<const uint8_t> more) {
  if (bytes.size() < kEthernetHeader) return nullptr;
  std::span<const uint8_t> data = bytes.subspan(kEthernetHeader);
  if (data.size() + more.size() > kMaxEthernetData) return nullptr;
  PacketPtr packet = pool.acquire();
  Frame& frame = *pool.attach_frame(*packet);
  frame.ethernet = {};
  std::copy_n(bytes.begin(), kEthernetHeader, frame.ethernet.begin());
  size_t header = header_of(ethertype_of(*packet), data);
  packet->header = {};
  packet->header[1] = class_of_tag(ethertype_of(*packet), data);
  std::copy_n(data.begin(), header, packet->header.begin());
  size_t begun = data.size() - header;
  std::copy_n(data.begin() + static_cast<long>(header), begun, frame.bytes.begin());
  // The header holds all that fits, whichever range it is in.
  size_t lacking = header == 0 ? 0 : std::min(wire::kMaxHeaderLen - header, more.size());
  std::copy_n(more.begin(), lacking, packet->header.begin() + static_cast<long>(header));
  std::copy(more.begin() + static_cast<long>(lacking), more.end(),
            frame.bytes.begin() + static_cast<long>(begun));
  packet->header_len = static_cast<uint16_t>(header + lacking);
  packet->payload.kind = Payload::Kind::kFrame;
  packet->payload.length = static_cast<uint16_t>(begun + more.size() - lacking);
  packet->sealed = packet->intact = packet->ethernet = true;
  return packet;
}

}  // namespace rocefs
