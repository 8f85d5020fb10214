#include "rdma/udp_sender.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "rdma/icmp_errors.h"
#include "rdma/ip_text.h"
#include "rdma/traffic_class.h"
#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

UdpAddress source_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  UdpAddress from;
  if (header[0] >> 4 == 6) {
    std::copy_n(header + 8, 16, from.ip.begin());
    from.port = wire::load16(header + wire::kIpv6Len);
  } else {
    from.ip = mapped_ipv4({header[12], header[13], header[14], header[15]});
    from.port = wire::load16(header + wire::kIpv4Len);
  }
  return from;
}

UdpAddress destination_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  UdpAddress to{{}, wire::kRocePort};
  if (header[0] >> 4 == 6) {
    std::copy_n(header + 24, 16, to.ip.begin());
  } else {
    to.ip = mapped_ipv4({header[16], header[17], header[18], header[19]});
  }
  return to;
}

}  // namespace

// One message that the kernel is to send.
struct UdpSender::Sending final : IoListener {
  UdpSender* owner = nullptr;
  Packet* packet = nullptr;
  size_t place = 0;  // in its chain
  int fd = -1;
  sockaddr_storage to{};
  std::array<iovec, 2> parts{};
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};

  void fill(Packet* what);
  void completed(int result, uint32_t) override { owner->sent(*this, result); }
};

// From the BTH to the ICRC: the kernel makes the headers before it, which are as the ICRC takes
// them to be.
void UdpSender::Sending::fill(Packet* what) {
  packet = what;
  bool ipv6 = packet->header[0] >> 4 == 6;
  size_t skipped = (ipv6 ? wire::kIpv6Len : wire::kIpv4Len) + wire::kUdpLen;
  parts[0] = {packet->header.data() + skipped, packet->header_len - skipped};
  parts[1] = {packet->frame->bytes.data(), packet->wire_length() - packet->header_len};
  message.msg_name = &to;
  message.msg_namelen = to_sockaddr(destination_of(*packet), to);
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  auto* item = reinterpret_cast<cmsghdr*>(control.data());
  item->cmsg_level = ipv6 ? static_cast<int>(IPPROTO_IPV6) : static_cast<int>(IPPROTO_IP);
  item->cmsg_type = ipv6 ? IPV6_TCLASS : IP_TOS;
  item->cmsg_len = CMSG_LEN(sizeof(int));
  int traffic_class = traffic_class_of(*packet);
  std::memcpy(CMSG_DATA(item), &traffic_class, sizeof traffic_class);
}

UdpSender::UdpSender(Parts parts)
    : parts_(std::move(parts)),
      sockets_(UdpSockets::most_allowed(), parts_.warn),
      sendings_(std::make_unique<Sending[]>(kSends)) {
  room_.owner = this;
  for (size_t i = kSends; i-- > 0;) {
    sendings_[i].owner = this;
    free_.push_back(&sendings_[i]);
  }
}

UdpSender::~UdpSender() {
  reset();
  for (size_t i = 0; i < kSends; ++i) {
    if (sendings_[i].packet) parts_.pool.release(sendings_[i].packet);
  }
}

void UdpSender::reset() {
  while (Packet* packet = waiting_.pop()) parts_.pool.release(packet);
  for (auto [place, packet] : returned_) parts_.pool.release(packet);
  returned_.clear();
  waiting_count_ = 0;
}

void UdpSender::send(Packet* packet, TimeNs now) {
  if (waiting_.empty() && hand_over(packet, now)) return;
  waiting_.push(packet);
  ++waiting_count_;
  if (waiting_count_ + under_way() >= kSends) parts_.full(true);
}

bool UdpSender::hand_over(Packet* packet, TimeNs now) {
  if (held_ || free_.empty() || chain_ >= most_) return false;
  UdpAddress from = source_of(*packet);
  int fd = sockets_.find(from, now);
  if (fd == -EBUSY) return false;
  if (fd < 0) {
    drop(parts_.counters.tx_no_socket,
         fmt::format("cannot send from {}, UDP port {}: {}", ip_text(from.ip), from.port,
                     std::strerror(-fd)));
    parts_.pool.release(packet);
    return true;
  }
  Sending& sending = *free_.back();
  sending.fill(packet);
  if (!parts_.ring.chain_message(fd, sending.message, sending, under_way() > 0)) {
    sending.packet = nullptr;
    return false;
  }
  free_.pop_back();
  sending.place = chain_++;
  sending.fd = fd;
  sockets_.begin(fd);
  return true;
}

void UdpSender::sent(Sending& sending, int result) {
  Packet* packet = std::exchange(sending.packet, nullptr);
  free_.push_back(&sending);
  sockets_.end(sending.fd);
  bool again = result == -EAGAIN || result == -ECANCELED;
  if (again || (result < 0 && hear_icmp(sending.fd))) {
    if (result == -EAGAIN) full_fd_ = sending.fd;
    returned_.emplace_back(sending.place, packet);
  } else {
    if (result >= 0) {
      parts_.counters.tx_packets.add();
      parts_.counters.tx_bytes.add(packet->wire_length());
    } else {
      failed_ = true;
      fail(-result, *packet);
    }
    parts_.pool.release(packet);
  }
  if (under_way() == 0) end_chain();
  if (waiting_count_ + under_way() + returned_.size() <= kSends / 2) parts_.full(false);
}

// All of it have been told of: what was returned goes before what came later.
void UdpSender::end_chain() {
  std::sort(returned_.begin(), returned_.end());
  for (auto at = returned_.rbegin(); at != returned_.rend(); ++at) waiting_.push_front(at->second);
  waiting_count_ += returned_.size();
  returned_.clear();
  most_ = std::exchange(failed_, false) ? 1 : std::min(2 * most_, kSends);
  chain_ = 0;
  int fd = std::exchange(full_fd_, -1);
  if (fd < 0) return go_on();
  held_ = true;
  room_.fd = fd;
  sockets_.begin(fd);
  parts_.ring.await_room(fd, room_);
}

void UdpSender::room_again() {
  sockets_.end(room_.fd);
  held_ = false;
  go_on();
}

void UdpSender::go_on() {
  TimeNs now = parts_.scheduler.now();
  while (Packet* packet = waiting_.pop()) {
    if (!hand_over(packet, now)) return waiting_.push_front(packet);
    --waiting_count_;
  }
}

// A send has failed: whether for what ICMP has said of an earlier one, so that it is to be done
// again.
bool UdpSender::hear_icmp(int fd) {
  IcmpErrors told = take_icmp_errors(fd);
  UplinkCounters& counters = parts_.counters;
  std::string why = fmt::format("what was sent to {} came back: {}", ip_text(told.to), told.why);
  drop(counters.icmp_refused, why, told.refused);
  drop(counters.icmp_unreachable, why, told.unreachable);
  drop(counters.icmp_too_long, why, told.too_long);
  return told.any();
}

void UdpSender::fail(int code, const Packet& packet) {
  UplinkCounters& counters = parts_.counters;
  auto kind = [&]() -> Counter& {
    switch (code) {
      case EMSGSIZE:
        return counters.tx_too_long;
      case ENETUNREACH:
      case EHOSTUNREACH:
      case ENETDOWN:
        return counters.tx_unreachable;
      case EPERM:
      case EACCES:
        return counters.tx_refused;
      case ENOBUFS:
      case ENOMEM:
        return counters.tx_no_buffers;
      default:
        return counters.tx_errors;
    }
  };
  drop(kind(), fmt::format("cannot send {} octets to {}: {}", packet.wire_length(),
                           ip_text(destination_of(packet).ip), std::strerror(code)));
}

void UdpSender::drop(Counter& kind, const std::string& why, uint64_t count) {
  constexpr TimeNs kQuiet = 10 * kSecond;
  if (count == 0) return;
  kind.add(count);
  auto last = std::find_if(warned_.begin(), warned_.end(),
                           [&](const auto& one) { return one.first == &kind; });
  TimeNs now = parts_.scheduler.now();
  if (last == warned_.end()) {
    warned_.emplace_back(&kind, now);
  } else if (now - last->second < kQuiet) {
    return;
  } else {
    last->second = now;
  }
  parts_.warn(why);
}

}  // namespace rocefs
