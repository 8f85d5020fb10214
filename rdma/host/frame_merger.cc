#include "rdma/host/frame_merger.h"

#include <algorithm>
#include <cstring>

#include "rdma/host/checksum.h"
#include "rdma/host/tcp.h"
#include "rdma/packet/ethernet_frame.h"
#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

using wire::load16;
using wire::load32;
using wire::store16;

constexpr size_t kMaxMerged = 65'535;  // octets of an IP packet
constexpr size_t kMaxFrames = 46;      // as many of 1448 octets of data fit

// A data segment whose headers stand in Packet::header.
struct Segment {
  size_t tcp = 0, data = 0;  // offsets in the header
  size_t length = 0;         // octets of data
  uint32_t sequence = 0;
  uint8_t flags = 0;
};

// False for a frame that is not to be merged: not TCP, without data, with IP options or fragments,
// or with other flags than ACK and PSH.
bool read_segment(const Packet& frame, Segment& out) {
  const uint8_t* header = frame.header.data();
  bool ipv6 = header[0] >> 4 == 6;
  if (frame.header_len == 0 || (!ipv6 && header[0] != 0x45)) return false;
  constexpr uint16_t kFragment = 0x3fff;
  if (header[ipv6 ? 6 : 9] != tcp::kProtocol || (!ipv6 && (load16(header + 6) & kFragment)))
    return false;
  out.tcp = ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
  out.data = out.tcp + tcp::header_len(header + out.tcp);
  if (out.data < out.tcp + tcp::kLen || out.data > frame.header_len) return false;
  size_t whole = ipv6 ? wire::kIpv6Len + load16(header + 4) : load16(header + 2);
  if (whole > ethernet_length(frame) || whole <= out.data) return false;
  out.length = whole - out.data;
  out.sequence = load32(header + out.tcp + 4);
  out.flags = header[out.tcp + tcp::kFlags];
  return (out.flags & ~tcp::kPush) == tcp::kAck;
}

// Whether both have the same headers, but for what differs within a run of segments: lengths, IPv4
// ID and checksums, sequence number, PSH.
bool same_connection(const Packet& one, const Segment& first, const Packet& other,
                     const Segment& next) {
  if (first.tcp != next.tcp || first.data != next.data) return false;
  const uint8_t *a = one.header.data(), *b = other.header.data();
  auto same = [&](size_t from, size_t to) {
    return std::memcmp(a + from, b + from, to - from) == 0;
  };
  size_t tcp = first.tcp;
  bool ip = tcp == wire::kIpv6Len ? same(0, 4) && same(6, tcp)
                                  : same(0, 2) && same(6, 10) && same(12, tcp);
  return ip && one.frame->ethernet == other.frame->ethernet && same(tcp, tcp + 4) &&
         same(tcp + 8, tcp + 13) && same(tcp + 14, tcp + 16) && same(tcp + 18, first.data);
}

void add_part(Delivery& out, const uint8_t* at, size_t length) {
  if (length == 0) return;
  out.parts.push_back({const_cast<uint8_t*>(at), length});
}

// Adds `length` octets of what is behind the Ethernet header, from offset `from` on.
void add_data(Delivery& out, const Packet& frame, size_t from, size_t length) {
  size_t in_header = std::min<size_t>(frame.header_len - from, length);
  add_part(out, frame.header.data() + from, in_header);
  add_part(out, frame.frame->bytes.data(), length - in_header);
}

// Writes the headers of a merged frame into those of its first segment. The kernel is told where
// the checksum belongs; its place holds the pseudo header's sum.
void set_headers(Delivery& out, const Segment& first, size_t data, uint8_t flags) {
  uint8_t* header = out.frames[0]->header.data();
  bool ipv6 = first.tcp == wire::kIpv6Len;
  size_t whole = first.data + data;
  ChecksumSum pseudo;
  if (ipv6) {
    store16(header + 4, static_cast<uint16_t>(whole - wire::kIpv6Len));
    pseudo.add({header + 8, 32});
  } else {
    store16(header + 2, static_cast<uint16_t>(whole));
    wire::set_ipv4_checksum({header, wire::kIpv4Len});
    pseudo.add({header + 12, 8});
  }
  uint8_t rest[4] = {0, tcp::kProtocol, 0, 0};
  store16(rest + 2, static_cast<uint16_t>(whole - first.tcp));
  pseudo.add(rest);
  uint16_t sum = pseudo.folded();
  std::memcpy(header + first.tcp + tcp::kChecksum, &sum, sizeof sum);
  header[first.tcp + tcp::kFlags] = flags;
  out.offload.flags = OffloadHeader::kNeedsChecksum;
  out.offload.type = ipv6 ? OffloadHeader::kTcp6 : OffloadHeader::kTcp4;
  out.offload.segment_size = static_cast<uint16_t>(first.length);
  out.offload.checksum_start = static_cast<uint16_t>(kEthernetHeader + first.tcp);
  out.offload.checksum_offset = tcp::kChecksum;
  out.offload.header_len = static_cast<uint16_t>(kEthernetHeader + first.data);
}

}  // namespace

void merge_frames(PacketFifo& waiting, Delivery& out) {
  out.offload = {};
  PacketPtr taken = waiting.pop();
  if (!taken) return;
  const Packet& packet = *taken;
  out.frames.push_back(std::move(taken));
  add_part(out, reinterpret_cast<const uint8_t*>(&out.offload), sizeof out.offload);
  add_part(out, packet.frame->ethernet.data(), kEthernetHeader);
  Segment first;
  if (!read_segment(packet, first)) return add_data(out, packet, 0, ethernet_length(packet));
  add_data(out, packet, 0, first.data + first.length);
  size_t data = first.length;
  uint8_t flags = first.flags;
  // A shorter segment, and one with PSH, is the last of a run.
  for (bool more = !(flags & tcp::kPush); more && out.frames.size() < kMaxFrames;) {
    const Packet* front = waiting.front();
    Segment next;
    if (!front || !read_segment(*front, next) || !same_connection(packet, first, *front, next))
      break;
    bool fits = next.sequence == first.sequence + data && next.length <= first.length &&
                first.data + data + next.length <= kMaxMerged;
    if (!fits) break;
    add_data(out, *front, next.data, next.length);
    data += next.length;
    flags |= next.flags;
    more = next.length == first.length && !(next.flags & tcp::kPush);
    out.frames.push_back(waiting.pop());
  }
  if (out.frames.size() > 1) set_headers(out, first, data, flags);
}

}  // namespace rocefs
