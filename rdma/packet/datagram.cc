#include "rdma/packet/datagram.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

constexpr uint8_t kUdpProtocol = 17, kHopLimit = 64;

void put_ipv4(const Ip& from, const Ip& to, uint8_t tos, uint16_t id, size_t udp_len,
              std::span<uint8_t> at) {
  std::fill(at.begin(), at.end(), uint8_t{0});
  at[0] = 0x45;
  at[1] = tos;
  wire::store16(&at[2], static_cast<uint16_t>(wire::kIpv4Len + udp_len));
  wire::store16(&at[4], id);
  wire::store16(&at[6], wire::kDontFragment);
  at[8] = kHopLimit;
  at[9] = kUdpProtocol;
  std::copy_n(from.begin() + 12, 4, at.begin() + 12);
  std::copy_n(to.begin() + 12, 4, at.begin() + 16);
  wire::set_ipv4_checksum(at);
}

void put_ipv6(const Ip& from, const Ip& to, uint8_t traffic_class, size_t udp_len,
              std::span<uint8_t> at) {
  wire::store32(&at[0], uint32_t{6} << 28 | uint32_t{traffic_class} << 20);
  wire::store16(&at[4], static_cast<uint16_t>(udp_len));
  at[6] = kUdpProtocol;
  at[7] = kHopLimit;
  std::copy(from.begin(), from.end(), at.begin() + 8);
  std::copy(to.begin(), to.end(), at.begin() + 24);
}

bool is_ipv6(const Packet& packet) {
  return packet.header[0] >> 4 == 6;
}

}  // namespace

size_t UdpAddressHash::operator()(const UdpAddress& address) const {
  uint64_t low;
  std::memcpy(&low, address.ip.data() + 8, sizeof low);
  return (low ^ address.port * uint64_t{0x9e3779b97f4a7c15}) * uint64_t{0xff51afd7ed558ccd} >> 7;
}

UdpAddress source_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  if (!is_ipv6(packet)) {
    return {mapped_ipv4({header[12], header[13], header[14], header[15]}),
            wire::load16(header + wire::kIpv4Len)};
  }
  UdpAddress from{{}, wire::load16(header + wire::kIpv6Len)};
  std::copy_n(header + 8, from.ip.size(), from.ip.begin());
  return from;
}

UdpAddress destination_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  if (!is_ipv6(packet)) {
    return {mapped_ipv4({header[16], header[17], header[18], header[19]}),
            wire::load16(header + wire::kIpv4Len + 2)};
  }
  UdpAddress to{{}, wire::load16(header + wire::kIpv6Len + 2)};
  std::copy_n(header + 24, to.ip.size(), to.ip.begin());
  return to;
}

wire::Headers headers_on(const AddressVector& path, uint8_t traffic_class) {
  wire::Headers headers;
  headers.is_ipv6 = !is_mapped_ipv4(path.remote);
  if (headers.is_ipv6) {
    headers.v6.traffic_class = traffic_class;
    headers.v6.flow_label = path.flow_label;
    headers.v6.next_header = kUdpProtocol;
    headers.v6.hop_limit = path.hop_limit;
    headers.v6.src = path.local;
    headers.v6.dst = path.remote;
  } else {
    headers.v4.tos = traffic_class;
    headers.v4.id = 0;
    headers.v4.flags_fragment = wire::kDontFragment;
    headers.v4.ttl = path.hop_limit;
    headers.v4.protocol = kUdpProtocol;
    std::copy_n(path.local.begin() + 12, 4, headers.v4.src.begin());
    std::copy_n(path.remote.begin() + 12, 4, headers.v4.dst.begin());
  }
  headers.udp.dst_port = wire::kRocePort;
  return headers;
}

void set_ip_id(Packet& packet, uint16_t id) {
  if (!is_ipv6(packet)) wire::store16(packet.header.data() + 4, id);
}

PacketPtr packet_of_datagram(PacketPool& pool, const IcrcSolver& solver, const UdpAddress& from,
                             const UdpAddress& to, uint8_t traffic_class, uint16_t place,
                             std::span<uint8_t> bytes, IcrcSolver::Verdict& verdict) {
  assert(bytes.size() >= kDatagramHeadroom);
  size_t payload = bytes.size() - kDatagramHeadroom;
  if (payload > kMaxDatagram) return nullptr;
  bool ipv6 = !is_mapped_ipv4(to.ip);
  size_t ip_len = ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
  std::span<uint8_t> all = bytes.subspan(wire::kIpv6Len - ip_len);
  const size_t udp_len = wire::kUdpLen + payload;
  if (ipv6) {
    put_ipv6(from.ip, to.ip, traffic_class, udp_len, all);
  } else {
    put_ipv4(from.ip, to.ip, traffic_class, place, udp_len, all.first(ip_len));
  }
  uint8_t* udp = all.data() + ip_len;
  wire::store16(udp, from.port);
  wire::store16(udp + 2, to.port);
  wire::store16(udp + 4, static_cast<uint16_t>(udp_len));
  wire::store16(udp + 6, 0);
  uint32_t icrc;
  PacketPtr packet = packet_of_bytes(pool, all, icrc);
  if (!packet) return nullptr;
  verdict = packet->intact ? IcrcSolver::Verdict::kRight : solver.repair(*packet, icrc);
  return packet;
}

}  // namespace rocefs
