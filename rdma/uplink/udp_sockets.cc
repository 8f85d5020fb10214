#include "rdma/uplink/udp_sockets.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/uplink/icmp_errors.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

// From linux/udp.h (udp(7)), which glibc's netinet/udp.h excludes.
constexpr int kNoCheck6Tx = 101, kNoCheck6Rx = 102;
constexpr int kBufferBytes = 8 << 20;

void set(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

// A window of 4 KiB packets does not fit in the kernel's default buffer.
void set_buffer(int fd, int forced, int name) {
  int value = kBufferBytes;
  if (::setsockopt(fd, SOL_SOCKET, forced, &value, sizeof value) != 0) {
    set(fd, SOL_SOCKET, name, kBufferBytes);
  }
}

// A sending socket is never read: its receive queue must stay empty.
void refuse_all(int fd) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  sock_fprog program{1, &nothing};
  (void)::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

// The ICRC covers more than UDP's checksum would: RoCEv2 sends none (annex A17).
void send_checksums(int fd, bool ipv6, bool wanted) {
  if (ipv6) {
    set(fd, IPPROTO_UDP, kNoCheck6Tx, !wanted);
  } else {
    set(fd, SOL_SOCKET, SO_NO_CHECK, !wanted);
  }
}

void prepare_to_send(int fd, bool ipv6) {
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
  refuse_all(fd);
  keep_icmp_errors(fd, ipv6);
  if (ipv6) {
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  } else {
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  }
  send_checksums(fd, ipv6, false);
}

void prepare_to_receive(int fd, bool ipv6) {
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
  set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  if (ipv6) {
    set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set(fd, IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 1);
    set(fd, IPPROTO_UDP, kNoCheck6Rx, 1);
  } else {
    set(fd, IPPROTO_IP, IP_RECVTOS, 1);
    set(fd, IPPROTO_IP, IP_RECVFRAGSIZE, 1);
  }
}

// Groups that this socket has joined, and nobody else's: those of each interface come once.
void prepare_for_group(int fd, bool ipv6) {
  constexpr int kIpv6MulticastAll = 29;  // linux/in6.h, which netinet/in.h excludes
  set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (ipv6) {
    set(fd, IPPROTO_IPV6, kIpv6MulticastAll, 0);
  } else {
    set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  }
}

void send_groups_by(int fd, unsigned interface) {
  set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface));
}

}  // namespace

Result<Fd> open_udp(const UdpAddress& address, UdpUse use) {
  sockaddr_storage name{};
  socklen_t length = to_sockaddr(address, name);
  bool ipv6 = name.ss_family == AF_INET6;
  Fd fd(::socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd) return errorf(errno, "no socket: {}", std::strerror(errno));
  if (ipv6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  (use == UdpUse::kSend ? prepare_to_send : prepare_to_receive)(fd.get(), ipv6);
  if (use == UdpUse::kReceiveGroup) prepare_for_group(fd.get(), ipv6);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0) return fd;
  if (errno == EADDRINUSE) {
    return errorf(errno, "UDP port {} of {} is in use", address.port, ip_text(address.ip));
  }
  if (errno == EADDRNOTAVAIL) {
    return errorf(errno, "{} is not an address of this machine", ip_text(address.ip));
  }
  return errorf(errno, "{}, UDP port {}: {}", ip_text(address.ip), address.port,
                std::strerror(errno));
}

void take_batches(int fd, bool wanted) {
  set(fd, IPPROTO_UDP, UDP_GRO, wanted);
}

void UdpSocket::set_traffic_class(uint8_t value) {
  bool ipv6 = !is_mapped_ipv4(address.ip);
  int wanted = value;
  int rc = ::setsockopt(fd.get(), ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS,
                        &wanted, sizeof wanted);
  if (rc == 0) traffic_class = value;
}

UdpSockets::UdpSockets(size_t most, std::function<void(const std::string&)> crowded)
    : most_(std::max<size_t>(most, 1)), crowded_(std::move(crowded)) {}

size_t UdpSockets::most_allowed() {
  constexpr rlim_t kMaxSockets = 0x4000;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return static_cast<size_t>(std::min(kMaxSockets, limit.rlim_cur / 2));
}

int UdpSockets::find(const UdpAddress& from, TimeNs now) {
  // Fast path: a flow sends many packets in a row.
  if (!sockets_.empty() && sockets_.front().address == from) return use(sockets_.begin(), now);
  auto place = places_.find(from);
  if (place != places_.end()) {
    sockets_.splice(sockets_.begin(), sockets_, place->second);
    return use(sockets_.begin(), now);
  }
  if (sockets_.size() >= most_ && !forget_oldest(false)) return -EBUSY;
  sockets_.emplace_front().address = from;
  places_.emplace(from, sockets_.begin());
  open(sockets_.front(), now);
  return use(sockets_.begin(), now);
}

int UdpSockets::use(Sockets::iterator at, TimeNs now) {
  if (!at->fd && now >= at->retry_at) open(*at, now);
  return at->fd ? at->fd.get() : -at->error;
}

void UdpSockets::open(UdpSocket& socket, TimeNs now) {
  Result<Fd> opened = open_udp(socket.address, UdpUse::kSend);
  bool full = !opened && (opened.error().code == EMFILE || opened.error().code == ENFILE);
  if (full && forget_oldest(true)) opened = open_udp(socket.address, UdpUse::kSend);
  if (opened) {
    socket.fd = std::move(*opened);
    socket.room = {};
    socket.traffic_class.reset();
    if (checksums_) send_checksums(socket.fd.get(), !is_mapped_ipv4(socket.address.ip), true);
    auto interface = interfaces_.find(socket.address.ip);
    if (interface != interfaces_.end()) send_groups_by(socket.fd.get(), interface->second);
    ++open_;
    return;
  }
  socket.error = opened.error().code;
  socket.retry_at = now + kSecond;
}

// Closes or forgets the oldest idle socket; with `open`, one that has a descriptor.
bool UdpSockets::forget_oldest(bool open) {
  auto idle = [&](const UdpSocket& socket) { return socket.fd ? socket.under_way == 0 : !open; };
  auto oldest = std::find_if(sockets_.rbegin(), sockets_.rend(), idle);
  if (oldest == sockets_.rend()) return false;
  auto at = std::prev(oldest.base());
  bool closes = static_cast<bool>(at->fd);
  if (closes && crowded_) {
    std::exchange(crowded_, nullptr)(
        fmt::format("more than {} UDP source ports are in use: sockets are closed and opened again "
                    "for them; a higher limit of open files (ulimit -n) may allow more",
                    open_));
  }
  if (closes) --open_;
  places_.erase(at->address);
  sockets_.erase(at);
  return true;
}

void UdpSockets::set_interface(const Ip& own, unsigned index) {
  if (is_mapped_ipv4(own)) return;
  interfaces_[own] = index;
  for (UdpSocket& socket : sockets_) {
    if (socket.fd && socket.address.ip == own) send_groups_by(socket.fd.get(), index);
  }
}

void UdpSockets::set_checksums(bool wanted) {
  checksums_ = wanted;
  for (UdpSocket& socket : sockets_) {
    if (socket.fd) send_checksums(socket.fd.get(), !is_mapped_ipv4(socket.address.ip), wanted);
  }
}

}  // namespace rocefs
