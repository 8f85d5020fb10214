// Splitting of what a host's kernel gives its interface, and merging of what it is given: headers,
// checksums, data, and what must not be merged.
#include <algorithm>
#include <numeric>
#include <vector>

#include "rdma/host/checksum.h"
#include "rdma/host/frame_merger.h"
#include "rdma/host/frame_splitter.h"
#include "rdma/host/tcp.h"
#include "rdma/packet/ethernet_frame.h"
#include "rdma/wire/bytes.h"
#include "test/catch.h"

using namespace rocefs;

namespace {

struct Pool {
  Outstanding outstanding;
  PacketPool pool{outstanding};
};

constexpr size_t kIp = kEthernetHeader;

// An Ethernet frame of TCP with this many octets of data, which count up.
std::vector<uint8_t> tcp_frame(bool ipv6, size_t data, uint32_t sequence = 1000,
                               uint8_t flags = tcp::kAck | tcp::kPush) {
  size_t ip_len = ipv6 ? wire::kIpv6Len : wire::kIpv4Len, tcp_at = kIp + ip_len;
  std::vector<uint8_t> frame(tcp_at + tcp::kLen + data);
  std::fill_n(frame.begin(), 12, uint8_t{2});
  wire::store16(&frame[12], ipv6 ? 0x86dd : 0x0800);
  size_t segment = tcp::kLen + data;
  if (ipv6) {
    frame[kIp] = 0x60;
    wire::store16(&frame[kIp + 4], static_cast<uint16_t>(segment));
    frame[kIp + 6] = tcp::kProtocol;
    frame[kIp + 7] = 64;
  } else {
    frame[kIp] = 0x45;
    wire::store16(&frame[kIp + 2], static_cast<uint16_t>(ip_len + segment));
    wire::store16(&frame[kIp + 4], 77);
    frame[kIp + 8] = 64;
    frame[kIp + 9] = tcp::kProtocol;
  }
  frame[kIp + (ipv6 ? 8 : 12)] = 10;
  frame[tcp_at - 1] = 9;
  wire::store16(&frame[tcp_at], 5001);
  wire::store32(&frame[tcp_at + tcp::kSequence], sequence);
  frame[tcp_at + tcp::kDataOffset] = 5 << 4;
  frame[tcp_at + tcp::kFlags] = flags;
  std::iota(frame.end() - static_cast<long>(data), frame.end(), static_cast<uint8_t>(sequence));
  return frame;
}

std::vector<uint8_t> with_header(const OffloadHeader& offload, const std::vector<uint8_t>& frame) {
  std::vector<uint8_t> bytes(sizeof offload + frame.size());
  std::memcpy(bytes.data(), &offload, sizeof offload);
  std::copy(frame.begin(), frame.end(), bytes.begin() + sizeof offload);
  return bytes;
}

OffloadHeader segmentation(bool ipv6, uint16_t size) {
  OffloadHeader offload;
  offload.flags = OffloadHeader::kNeedsChecksum;
  offload.type = ipv6 ? OffloadHeader::kTcp6 : OffloadHeader::kTcp4;
  offload.segment_size = size;
  offload.checksum_start = static_cast<uint16_t>(kIp + (ipv6 ? wire::kIpv6Len : wire::kIpv4Len));
  offload.checksum_offset = tcp::kChecksum;
  return offload;
}

std::vector<uint8_t> bytes_of(const Packet& packet) {
  std::vector<uint8_t> bytes(kEthernetHeader + ethernet_length(packet));
  std::copy_n(packet.frame->ethernet.begin(), kEthernetHeader, bytes.begin());
  copy_data(packet, bytes.data() + kEthernetHeader);
  return bytes;
}

// Whether the TCP checksum is right, computed by RFC 1071's text, 16 bits at a time.
bool has_right_checksum(const std::vector<uint8_t>& frame, bool ipv6) {
  size_t ip_len = ipv6 ? wire::kIpv6Len : wire::kIpv4Len, at = kIp + ip_len;
  uint32_t sum = tcp::kProtocol + static_cast<uint32_t>(frame.size() - at);
  for (size_t i = kIp + (ipv6 ? 8 : 12); i < at; i += 2) sum += wire::load16(&frame[i]);
  for (size_t i = at; i < frame.size(); ++i) sum += i % 2 == at % 2 ? frame[i] << 8 : frame[i];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

std::vector<std::vector<uint8_t>> split(Pool& pool, std::vector<uint8_t> bytes, bool& good) {
  std::vector<std::vector<uint8_t>> frames;
  good = split_frame(pool.pool, bytes,
                     [&](PacketPtr&& packet) { frames.push_back(bytes_of(*packet)); });
  return frames;
}

PacketPtr packet_with(Pool& pool, const std::vector<uint8_t>& frame) {
  return packet_of_frame(pool.pool, frame);
}

// The frame that the kernel is given.
std::vector<uint8_t> frame_of(const Delivery& delivery) {
  std::vector<uint8_t> bytes;
  for (const iovec& part : delivery.parts) {
    auto* at = static_cast<const uint8_t*>(part.iov_base);
    bytes.insert(bytes.end(), at, at + part.iov_len);
  }
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(OffloadHeader));
  return bytes;
}

}  // namespace

TEST_CASE("splitter: segments have the data, sequence numbers, flags and checksums of their own") {
  for (bool ipv6 : {false, true}) {
    INFO("IPv6: " << ipv6);
    Pool pool;
    uint8_t flags = tcp::kAck | tcp::kPush | tcp::kFin | tcp::kCwr;
    auto whole = tcp_frame(ipv6, 10'001, 0xfffffff0u, flags);  // the sequence number wraps
    bool good = false;
    auto frames = split(pool, with_header(segmentation(ipv6, 4000), whole), good);
    REQUIRE(good);
    REQUIRE(frames.size() == 3);
    size_t headers = whole.size() - 10'001, at = 0;
    for (size_t i = 0; i < frames.size(); ++i) {
      INFO("segment " << i);
      const auto& frame = frames[i];
      const uint8_t* tcp_header = &frame[headers - tcp::kLen];
      REQUIRE(frame.size() == headers + std::min<size_t>(4000, 10'001 - at));
      CHECK(std::equal(frame.begin() + static_cast<long>(headers), frame.end(),
                       whole.begin() + static_cast<long>(headers + at)));
      CHECK(wire::load32(tcp_header + tcp::kSequence) == 0xfffffff0u + static_cast<uint32_t>(at));
      bool first = i == 0, last = i == 2;
      CHECK((tcp_header[tcp::kFlags] & tcp::kCwr) == (first ? tcp::kCwr : 0));
      CHECK((tcp_header[tcp::kFlags] & tcp::kFin) == (last ? tcp::kFin : 0));
      CHECK((tcp_header[tcp::kFlags] & tcp::kPush) == (last ? tcp::kPush : 0));
      CHECK(has_right_checksum(frame, ipv6));
      size_t said =
          ipv6 ? wire::kIpv6Len + wire::load16(&frame[kIp + 4]) : wire::load16(&frame[kIp + 2]);
      CHECK(said == frame.size() - kIp);
      if (!ipv6) {
        CHECK(wire::load16(&frame[kIp + 4]) == 77 + i);
        ChecksumSum sum;
        sum.add({&frame[kIp], wire::kIpv4Len});
        CHECK(sum.folded() == 0xffff);
      }
      at += 4000;
    }
  }
}

TEST_CASE("splitter: a frame that is not to be split passes, with its checksum") {
  Pool pool;
  bool good = false;
  auto frame = tcp_frame(false, 100);
  OffloadHeader none;
  auto same = split(pool, with_header(none, frame), good);
  REQUIRE((good && same.size() == 1));
  CHECK(same[0] == frame);
  // The kernel leaves the pseudo header's sum in the checksum's place.
  OffloadHeader partial = segmentation(false, 0);
  partial.type = OffloadHeader::kNone;
  size_t at = partial.checksum_start;
  uint32_t sum = tcp::kProtocol + static_cast<uint32_t>(frame.size() - at);
  for (size_t i = kIp + 12; i < at; i += 2) sum += wire::load16(&frame[i]);
  wire::store16(&frame[at + tcp::kChecksum], static_cast<uint16_t>((sum & 0xffff) + (sum >> 16)));
  auto summed = split(pool, with_header(partial, frame), good);
  REQUIRE((good && summed.size() == 1));
  CHECK(has_right_checksum(summed[0], false));
}

TEST_CASE("splitter: malformed frames are refused, and nothing is taken") {
  Pool pool;
  auto whole = tcp_frame(false, 5000);
  auto refused = [&](const OffloadHeader& offload, const std::vector<uint8_t>& frame) {
    bool good = true;
    auto frames = split(pool, with_header(offload, frame), good);
    return !good && frames.empty();
  };
  OffloadHeader good = segmentation(false, 1000);
  CHECK_FALSE(refused(good, whole));
  OffloadHeader bad = good;
  bad.segment_size = 0;
  CHECK(refused(bad, whole));
  bad = good;
  bad.flags = 0;
  CHECK(refused(bad, whole));
  bad = good;
  bad.type = OffloadHeader::kTcp6;  // the frame is IPv4
  CHECK(refused(bad, whole));
  bad.type = 5;  // UDP
  CHECK(refused(bad, whole));
  bad = good;
  bad.checksum_start = 60'000;
  CHECK(refused(bad, whole));
  bad = good;
  bad.segment_size = 60'000;  // longer than a frame of the wire
  CHECK(refused(bad, tcp_frame(false, 60'000)));
  CHECK(refused(good, {}));
  CHECK(refused(good, {whole.begin(), whole.begin() + 13}));
  bool taken = true;
  split(pool, std::vector<uint8_t>(5), taken);
  CHECK_FALSE(taken);
  CHECK(pool.outstanding.packets == 0);
}

TEST_CASE("merger: neighbouring segments become what the sender's kernel gave") {
  for (bool ipv6 : {false, true}) {
    INFO("IPv6: " << ipv6);
    Pool pool;
    auto whole = tcp_frame(ipv6, 10'000);
    PacketFifo waiting;
    auto bytes = with_header(segmentation(ipv6, 4000), whole);
    REQUIRE(split_frame(pool.pool, bytes,
                        [&](PacketPtr&& packet) { waiting.push(std::move(packet)); }));
    Delivery delivery;
    merge_frames(waiting, delivery);
    CHECK(waiting.empty());
    CHECK(delivery.frames.size() == 3);
    auto merged = frame_of(delivery);
    REQUIRE(merged.size() == whole.size());
    size_t tcp_at = merged.size() - 10'000 - tcp::kLen;
    // All but checksums, which the kernel is to compute.
    std::copy_n(&whole[tcp_at + tcp::kChecksum], 2, &merged[tcp_at + tcp::kChecksum]);
    if (!ipv6) std::copy_n(&whole[kIp + 10], 2, &merged[kIp + 10]);
    CHECK(merged == whole);
    CHECK(delivery.offload.type == (ipv6 ? OffloadHeader::kTcp6 : OffloadHeader::kTcp4));
    CHECK(delivery.offload.segment_size == 4000);
    CHECK(delivery.offload.checksum_start == tcp_at);
  }
}

TEST_CASE("merger: what is no run of one connection stays apart, in order") {
  Pool pool;
  auto merged_with = [&](const std::vector<uint8_t>& second) {
    PacketFifo waiting;
    waiting.push(packet_with(pool, tcp_frame(false, 1000, 1000, tcp::kAck)));
    waiting.push(packet_with(pool, second));
    Delivery delivery;
    merge_frames(waiting, delivery);
    return delivery.frames.size() == 2;
  };
  auto next = tcp_frame(false, 1000, 2000, tcp::kAck);
  CHECK(merged_with(next));
  CHECK_FALSE(merged_with(tcp_frame(false, 1000, 2001, tcp::kAck)));  // a gap
  CHECK_FALSE(merged_with(tcp_frame(false, 1001, 2000, tcp::kAck)));  // longer than the first
  CHECK_FALSE(merged_with(tcp_frame(false, 0, 2000, tcp::kAck)));     // no data
  CHECK_FALSE(merged_with(tcp_frame(false, 1000, 2000, tcp::kAck | tcp::kFin)));
  CHECK_FALSE(merged_with(tcp_frame(true, 1000, 2000, tcp::kAck)));  // IPv6
  for (size_t at :
       {size_t{0}, size_t{kIp + 1}, size_t{kIp + 15}, size_t{kIp + 8}, size_t{kIp + 21}}) {
    INFO("octet " << at);
    auto other = next;  // MAC, TOS (a CE mark), source, TTL, source port
    other[at] ^= 1;
    CHECK_FALSE(merged_with(other));
  }
  auto fragment = next;
  fragment[kIp + 6] = 0x20;
  CHECK_FALSE(merged_with(fragment));
  auto options = next;
  options[kIp] = 0x46;
  CHECK_FALSE(merged_with(options));
  // PSH ends a run.
  PacketFifo waiting;
  waiting.push(packet_with(pool, tcp_frame(false, 1000, 1000, tcp::kAck | tcp::kPush)));
  waiting.push(packet_with(pool, next));
  Delivery delivery;
  merge_frames(waiting, delivery);
  CHECK(delivery.frames.size() == 1);
  CHECK(frame_of(delivery) == tcp_frame(false, 1000, 1000, tcp::kAck | tcp::kPush));
}

TEST_CASE("merger: a run is as long as an IP packet can be") {
  Pool pool;
  PacketFifo waiting;
  for (uint32_t i = 0; i < 100; ++i) {
    waiting.push(packet_with(pool, tcp_frame(false, 1400, i * 1400, tcp::kAck)));
  }
  size_t frames = 0;
  while (!waiting.empty()) {
    Delivery delivery;
    merge_frames(waiting, delivery);
    frames += delivery.frames.size();
    CHECK(frame_of(delivery).size() <= kEthernetHeader + 65'535);
  }
  CHECK(frames == 100);
}
