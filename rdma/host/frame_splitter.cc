#include "rdma/host/frame_splitter.h"

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
using wire::store32;

// A frame to split: where its headers are.
struct Segments {
  std::span<uint8_t> frame;
  bool ipv6 = false;
  size_t ip = 0, tcp = 0, data = 0;  // offsets in the frame
  size_t size = 0;                   // octets of a segment's data
};

// Reads the headers of a frame that is to be split. False if they are not those of TCP, or too
// short.
bool read_headers(const OffloadHeader& offload, std::span<uint8_t> frame, Segments& out) {
  uint8_t type = offload.type & static_cast<uint8_t>(~OffloadHeader::kEcn);
  out.frame = frame;
  out.ipv6 = type == OffloadHeader::kTcp6;
  if (!out.ipv6 && type != OffloadHeader::kTcp4) return false;
  if (!(offload.flags & OffloadHeader::kNeedsChecksum) || offload.segment_size == 0) return false;
  if (frame.size() < kEthernetHeader) return false;
  out.ip = load16(&frame[12]) == kTypeVlan ? kEthernetHeader + 4 : kEthernetHeader;
  out.tcp = offload.checksum_start;
  size_t ip_len = out.ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
  if (out.tcp < out.ip + ip_len || out.tcp + tcp::kLen > frame.size()) return false;
  size_t header = tcp::header_len(&frame[out.tcp]);
  out.data = out.tcp + header;
  out.size = offload.segment_size;
  return header >= tcp::kLen && out.data <= frame.size() &&
         frame[out.ip] >> 4 == (out.ipv6 ? 6 : 4) &&
         out.data - kEthernetHeader + out.size <= kMaxEthernetData;
}

// Sum of the pseudo header of TCP, but for the length.
ChecksumSum pseudo_header(const Segments& from) {
  ChecksumSum sum;
  size_t addresses = from.ipv6 ? 8 : 12;
  sum.add(from.frame.subspan(from.ip + addresses, from.ipv6 ? 32 : 8));
  const uint8_t protocol[2] = {0, tcp::kProtocol};
  sum.add(protocol);
  return sum;
}

// Writes the headers of the segment of `length` octets at `at` into the frame's own headers,
// without TCP's checksum.
void set_headers(const Segments& from, size_t at, size_t length, uint32_t first_sequence,
                 uint16_t first_id, uint8_t flags) {
  uint8_t* ip = &from.frame[from.ip];
  uint8_t* segment_header = &from.frame[from.tcp];
  size_t number = at / from.size;
  bool last = from.data + at + length == from.frame.size();
  size_t segment = from.data - from.tcp + length;
  if (from.ipv6) {
    store16(ip + 4, static_cast<uint16_t>(from.tcp - from.ip - wire::kIpv6Len + segment));
  } else {
    store16(ip + 2, static_cast<uint16_t>(from.tcp - from.ip + segment));
    store16(ip + 4, static_cast<uint16_t>(first_id + number));
    store16(ip + 10, 0);
    ChecksumSum sum;
    sum.add(from.frame.subspan(from.ip, from.tcp - from.ip));
    sum.store(ip + 10);
  }
  store32(segment_header + tcp::kSequence, first_sequence + static_cast<uint32_t>(at));
  if (!last) flags &= static_cast<uint8_t>(~(tcp::kFin | tcp::kPush));
  if (number > 0) flags &= static_cast<uint8_t>(~tcp::kCwr);
  segment_header[tcp::kFlags] = flags;
  store16(segment_header + tcp::kChecksum, 0);
}

// Computes TCP's checksum of a segment. The packet's octets have just been copied, and are nearer
// to the CPU than the frame's.
void set_checksum(const Segments& from, ChecksumSum sum, Packet& segment) {
  static_assert(wire::kMaxHeaderLen % 2 == 0, "only the last range may be odd");
  size_t tcp = from.tcp - kEthernetHeader, header = segment.header_len;
  size_t length = ethernet_length(segment) - tcp;
  const uint8_t length_bytes[2] = {static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
  sum.add(length_bytes);
  if (tcp < header) sum.add(segment.header_bytes().subspan(tcp));
  size_t skipped = tcp < header ? 0 : tcp - header;
  sum.add(std::span(segment.frame->bytes.data() + skipped, segment.payload.length - skipped));
  size_t at = tcp + tcp::kChecksum;
  sum.store(at < header ? &segment.header[at] : &segment.frame->bytes[at - header]);
}

bool split_tcp(PacketPool& pool, const Segments& from,
               const std::function<void(PacketPtr&&)>& take) {
  const uint32_t sequence = load32(&from.frame[from.tcp + 4]);
  const uint16_t id = load16(&from.frame[from.ip + 4]);
  const uint8_t flags = from.frame[from.tcp + tcp::kFlags];
  const ChecksumSum pseudo = pseudo_header(from);
  size_t at = 0, all = from.frame.size() - from.data;
  do {
    size_t length = std::min(from.size, all - at);
    set_headers(from, at, length, sequence, id, flags);
    PacketPtr segment = packet_of_frame(pool, from.frame.first(from.data),
                                        from.frame.subspan(from.data + at, length));
    set_checksum(from, pseudo, *segment);
    take(std::move(segment));
    at += length;
  } while (at < all);
  return true;
}

// Computes the checksum that the kernel has left: its place holds the pseudo header's sum. UDP has
// all ones for 0.
bool complete_checksum(const OffloadHeader& offload, std::span<uint8_t> frame) {
  size_t start = offload.checksum_start, at = start + offload.checksum_offset;
  if (start > frame.size() || at + 2 > frame.size()) return false;
  ChecksumSum sum;
  sum.add(frame.subspan(start));
  sum.store(&frame[at]);
  constexpr uint16_t kUdpOffset = 6;
  if (offload.checksum_offset == kUdpOffset && load16(&frame[at]) == 0) store16(&frame[at], 0xffff);
  return true;
}

}  // namespace

bool split_frame(PacketPool& pool, std::span<uint8_t> bytes,
                 const std::function<void(PacketPtr&&)>& take) {
  OffloadHeader offload;
  if (bytes.size() < sizeof offload) return false;
  std::memcpy(&offload, bytes.data(), sizeof offload);
  std::span<uint8_t> frame = bytes.subspan(sizeof offload);
  if (offload.type != OffloadHeader::kNone) {
    Segments segments;
    return read_headers(offload, frame, segments) && split_tcp(pool, segments, take);
  }
  bool partial = offload.flags & OffloadHeader::kNeedsChecksum;
  if (partial && !complete_checksum(offload, frame)) return false;
  PacketPtr packet = packet_of_frame(pool, frame);
  if (!packet) return false;
  take(std::move(packet));
  return true;
}

}  // namespace rocefs
