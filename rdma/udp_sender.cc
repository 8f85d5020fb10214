#include "rdma/udp_sender.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

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
      sockets_(UdpSockets::most_allowed(), [this] { parts_.ring.submit(); }),
      sendings_(std::make_unique<Sending[]>(kSends)) {
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
}

void UdpSender::send(Packet* packet, TimeNs now) {
  if (!free_.empty()) return hand_over(packet, now);
  waiting_.push(packet);
  parts_.full(true);
}

void UdpSender::hand_over(Packet* packet, TimeNs now) {
  UdpAddress from = source_of(*packet);
  int fd = sockets_.find(from, now);
  if (fd < 0) {
    drop(parts_.counters.tx_no_socket,
         fmt::format("cannot send from {}, UDP port {}: {}", ip_text(from.ip), from.port,
                     std::strerror(-fd)));
    return parts_.pool.release(packet);
  }
  Sending& sending = *free_.back();
  free_.pop_back();
  sending.fill(packet);
  parts_.ring.send_message(fd, sending.message, sending);
}

void UdpSender::sent(Sending& sending, int result) {
  Packet* packet = std::exchange(sending.packet, nullptr);
  if (result >= 0) {
    parts_.counters.tx_packets.add();
    parts_.counters.tx_bytes.add(packet->wire_length());
  } else {
    fail(-result, *packet);
  }
  parts_.pool.release(packet);
  free_.push_back(&sending);
  TimeNs now = parts_.scheduler.now();
  while (!waiting_.empty() && !free_.empty()) hand_over(waiting_.pop(), now);
  if (free_.size() >= kSends / 2) parts_.full(false);
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

void UdpSender::drop(Counter& kind, const std::string& why) {
  constexpr TimeNs kQuiet = 10 * kSecond;
  kind.add();
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
