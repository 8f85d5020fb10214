#include "rdma/uplink/udp_batch.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cstring>

#include "rdma/packet/traffic_class.h"
#include "rdma/uplink/udp_sockets.h"

namespace rocefs {
namespace {

// Octets before the BTH.
size_t outer_len(const Packet& packet) {
  return (packet.header[0] >> 4 == 6 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen;
}

uint64_t qpn_bit(uint32_t qpn) {
  return uint64_t{1} << (qpn & 63);
}

// Whether one end waits for the packet: a packet that requests an acknowledgement, an
// acknowledgement, or the end of a READ's response.
bool is_awaited(const Packet& packet) {
  wire::Transport headers = packet.transport();
  const wire::OpcodeInfo& info = headers.info();
  return headers.ack_req() || (info.has_aeth && !info.first);
}

template <class T>
cmsghdr* put(msghdr& message, cmsghdr* item, int level, int type, T value) {
  item->cmsg_level = level;
  item->cmsg_type = type;
  item->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(item), &value, sizeof value);
  message.msg_controllen += CMSG_SPACE(sizeof value);
  return reinterpret_cast<cmsghdr*>(reinterpret_cast<uint8_t*>(item) + CMSG_SPACE(sizeof value));
}

}  // namespace

void UdpBatch::begin(UdpSocket& socket, const Packet& first) {
  socket_ = &socket;
  to_ = {destination_of(first).ip, wire::kRocePort};
  traffic_class_ = traffic_class_of(first);
  if (!socket.traffic_class) socket.set_traffic_class(traffic_class_);
  qpns_ = 0;
  closed_ = false;
  count_ = 0;
  segment_ = first.wire_length() - outer_len(first);
  octets_ = 0;
}

bool UdpBatch::takes(const Packet& packet) const {
  size_t length = packet.wire_length() - outer_len(packet);
  return !closed_ && count_ < kMaxPackets && length <= segment_ && octets_ + length <= kMaxOctets &&
         traffic_class_of(packet) == traffic_class_ && destination_of(packet).ip == to_.ip;
}

bool UdpBatch::precedes(const Packet& packet) const {
  uint32_t qpn = packet.transport().dest_qpn();
  return (qpns_ & qpn_bit(qpn)) && destination_of(packet).ip == to_.ip &&
         std::any_of(packets_.begin(), packets_.begin() + count_,
                     [&](const PacketPtr& one) { return one->transport().dest_qpn() == qpn; });
}

// Sends from the BTH to the ICRC: the kernel makes the headers before it, equal to those that the
// ICRC covers.
void UdpBatch::add_sealed(PacketPtr&& packet) {
  size_t skipped = outer_len(*packet), behind = packet->wire_length() - packet->header_len;
  parts_[0] = {packet->header.data() + skipped, packet->header_len - skipped};
  parts_[1] = {packet->frame->bytes.data(), behind};
  part_count_ = 2;
  note(std::move(packet), skipped);
}

bool UdpBatch::add(PacketPtr&& packet) {
  size_t skipped = outer_len(*packet), headers = packet->header_len - skipped;
  if (!copies_) copies_ = std::make_unique_for_overwrite<uint8_t[]>(kMaxOctets);
  uint8_t* at = copies_.get() + octets_;
  set_ip_id(*packet, static_cast<uint16_t>(count_));
  if (!seal_into(*packet, at + headers)) return false;
  std::memcpy(at, packet->header.data() + skipped, headers);
  note(std::move(packet), skipped);
  parts_[0] = {copies_.get(), octets_};
  part_count_ = 1;
  return true;
}

void UdpBatch::note(PacketPtr&& packet, size_t skipped) {
  size_t octets = packet->wire_length() - skipped;
  octets_ += octets;
  qpns_ |= qpn_bit(packet->transport().dest_qpn());
  closed_ |= count_ + 1 == kMaxPackets || octets < segment_ || is_awaited(*packet);
  packets_[count_++] = std::move(packet);
}

const msghdr& UdpBatch::message() {
  bool ipv6 = !is_mapped_ipv4(to_.ip);
  message_.msg_name = &name_;
  message_.msg_namelen = to_sockaddr(to_, name_);
  message_.msg_iov = parts_.data();
  message_.msg_iovlen = part_count_;
  message_.msg_control = control_.data();  // ignored while it is empty
  message_.msg_controllen = 0;
  auto* item = reinterpret_cast<cmsghdr*>(control_.data());
  if (traffic_class_ != socket_->traffic_class) {
    item = ipv6 ? put(message_, item, IPPROTO_IPV6, IPV6_TCLASS, int{traffic_class_})
                : put(message_, item, IPPROTO_IP, IP_TOS, int{traffic_class_});
  }
  if (count_ > 1) {
    put(message_, item, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(segment_));
  }
  return message_;
}

}  // namespace rocefs
