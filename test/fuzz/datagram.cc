// A datagram of an unknown sender: its headers reconstructed, its IP ID solved.
//
// The first octet says the IP version, whether the ICRC is made right for an ID, and the ID.
#include "rdma/packet/datagram.h"

#include <algorithm>
#include <vector>

#include "rdma/wire/bytes.h"
#include "rdma/wire/icrc.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

enum Flags : uint8_t { kIpv6 = 1 << 0, kRight = 1 << 1, kNoDf = 1 << 2 };

// Appends the ICRC that the sender of `datagram` would have computed.
void finish(std::vector<uint8_t>& datagram, const Ip& from, const Ip& to, uint8_t flags,
            uint16_t id) {
  std::vector<uint8_t> packet(wire::kIpv4Len + wire::kUdpLen);
  size_t udp_len = wire::kUdpLen + datagram.size() + wire::kIcrcLen;
  packet[0] = 0x45;
  wire::store16(&packet[2], static_cast<uint16_t>(wire::kIpv4Len + udp_len));
  wire::store16(&packet[4], id);
  wire::store16(&packet[6], flags & kNoDf ? 0 : 0x4000);
  packet[9] = 17;
  std::copy_n(from.begin() + 12, 4, &packet[12]);
  std::copy_n(to.begin() + 12, 4, &packet[16]);
  wire::store16(&packet[20], 0xc001);
  wire::store16(&packet[22], wire::kRocePort);
  wire::store16(&packet[24], static_cast<uint16_t>(udp_len));
  packet.insert(packet.end(), datagram.begin(), datagram.end());
  std::span<const uint8_t> all(packet);
  size_t headers = std::min(packet.size(), wire::kMaxHeaderLen);
  uint32_t icrc = wire::icrc(all.first(headers), false, all.subspan(headers), {});
  datagram.resize(datagram.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(datagram).last(wire::kIcrcLen), icrc);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  static const IcrcSolver solver;
  uint8_t flags = data[0], traffic_class = data[3];
  uint16_t id = wire::load16(data + 1);
  bool ipv6 = flags & kIpv6;
  Ip from = mapped_ipv4({10, 0, 0, 1}), to = mapped_ipv4({10, 0, 0, 2});
  if (ipv6) from[0] = to[0] = 0x20;
  std::vector<uint8_t> datagram(data + 4, data + size);
  bool right = (flags & kRight) && !ipv6 && datagram.size() >= wire::kBthLen;
  if (right) finish(datagram, from, to, flags, id);
  std::vector<uint8_t> room(kDatagramHeadroom);
  room.insert(room.end(), datagram.begin(), datagram.end());

  Outstanding outstanding;
  PacketPool pool(outstanding);
  IcrcSolver::Verdict verdict{};
  UdpAddress sender{from, 0xc001}, receiver{to, wire::kRocePort};
  PacketPtr packet =
      packet_of_datagram(pool, solver, sender, receiver, traffic_class, 0, room, verdict);
  if (packet) {
    wire::Parsed parsed;
    fuzz::require(wire::parse_headers(packet->header_bytes(), packet->payload.length, parsed) ==
                  wire::ParseError::kNone);
    size_t ip_len = ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
    fuzz::require(packet->wire_length() == ip_len + wire::kUdpLen + datagram.size());
    if (right) {
      fuzz::require(verdict != IcrcSolver::Verdict::kDamaged);
      fuzz::require(parsed.headers.v4.id == id);
    }
    packet.reset();
  }
  fuzz::require(outstanding.packets == 0);
  return 0;
}
