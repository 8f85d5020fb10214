// RoCEv2 packets as datagrams of a UDP socket: IP and UDP headers are rebuilt from the addresses
// and from the ancillary data of the kernel.
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

// IP address and UDP port from which a packet leaves, and to which it goes.
UdpAddress source_of(const Packet& packet);
UdpAddress destination_of(const Packet& packet);

// Headers of a packet on this path, but for the UDP source port and all behind UDP. IPv4 has DF and
// the ID 0, as an unconnected UDP socket would send: the ICRC covers the ID.
wire::Headers headers_on(const AddressVector& path, uint8_t traffic_class);

// Sets the IPv4 ID with which the kernel will send the packet, before it is sealed. The IP header
// checksum is left to the kernel. IPv6 has no ID.
void set_ip_id(Packet& packet, uint16_t id);

// Octets of IP and UDP headers, at most.
inline constexpr size_t kDatagramHeadroom = wire::kIpv6Len + wire::kUdpLen;
// Octets of UDP payload that RoCEv2 has, at most.
inline constexpr size_t kMaxDatagram =
    wire::kBthLen + wire::kMaxExtensionLen + kMaxMtu + kMaxPad + wire::kIcrcLen;

// Makes a packet of a datagram. `bytes` has kDatagramHeadroom octets, which are overwritten, before
// the datagram; `from` and `to` are of one IP version; `place` is the position among datagrams that
// the kernel gave as one (GRO): the sender's kernel numbers those of one message so. The packet is
// as if its IP header had come along, but for TTL and flow label, which the ICRC leaves out; the IP
// ID is `place`, or solved from the ICRC. A damaged packet, which no ID explains, is given as it
// came: the port drops it. Null if it is no RoCEv2 packet.
PacketPtr packet_of_datagram(PacketPool& pool, const IcrcSolver& solver, const UdpAddress& from,
                             const UdpAddress& to, uint8_t traffic_class, uint16_t place,
                             std::span<uint8_t> bytes, IcrcSolver::Verdict& verdict);

}  // namespace rocefs
