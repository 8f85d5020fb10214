// What a UDP socket gives of a RoCEv2 packet, and the packet that it was: IP and UDP headers are
// made again from the addresses and from what the kernel says beside the payload.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/packet/icrc_solver.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

struct UdpAddress {
  Ip ip{};
  uint16_t port = 0;

  bool operator==(const UdpAddress&) const = default;
};
struct UdpAddressHash {
  size_t operator()(const UdpAddress& address) const;
};

// Whence a packet leaves, and where it goes: its headers' addresses, and UDP ports.
UdpAddress source_of(const Packet& packet);
UdpAddress destination_of(const Packet& packet);

// The headers of a packet that takes this path, but for its UDP source port and what is behind.
// IPv4 has DF, and the ID 0: it is inside the ICRC, and what an unconnected UDP socket would send.
wire::Headers headers_on(const AddressVector& path, uint8_t traffic_class);

// The IPv4 ID that the kernel will send a packet with: it is to be sealed so. The checksum of the
// IP header is left to the kernel. IPv6 has no ID.
void set_ip_id(Packet& packet, uint16_t id);

// Octets of IP and UDP headers, at most.
inline constexpr size_t kDatagramHeadroom = wire::kIpv6Len + wire::kUdpLen;
// The largest payload of UDP that RoCEv2 has.
inline constexpr size_t kLargestDatagram =
    wire::kBthLen + wire::kMaxExtensionLen + kMaxMtu + kMaxPad + wire::kIcrcLen;

// `bytes` are a datagram behind kDatagramHeadroom octets, which are overwritten; `from` and `to`
// are of one IP version; `place` is the datagram's among those that the kernel gave as one (GRO).
// The packet is as if its IP header had come along, but for TTL and flow
// label, which the ICRC leaves out; the IP ID is 0, or the one that the ICRC tells. A damaged
// packet, which no ID explains, is given as it came: its ICRC tells the port. Null if it is no
// RoCEv2 packet.
Packet* packet_of_datagram(PacketPool& pool, const IcrcSolver& solver, const UdpAddress& from,
                           const UdpAddress& to, uint8_t traffic_class, uint16_t place,
                           std::span<uint8_t> bytes, IcrcSolver::Verdict& verdict);

}  // namespace rocefs
