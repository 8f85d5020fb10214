#include "rdma/uplink.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/interface.h"
#include "rdma/ip_text.h"
#include "rdma/traffic_class.h"
#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

constexpr TimeNs kBetweenTries = kSecond;

// A worker that has just died may still hold the port for a moment: the kernel ends its io_uring
// later.
Result<Fd> open_patiently(const UdpAddress& address) {
  constexpr int kTries = 20, kBetweenMs = 20;
  Result<Fd> opened = open_udp(address, UdpUse::kReceive);
  for (int i = 1; i < kTries && !opened && opened.error().code == EADDRINUSE; ++i) {
    ::poll(nullptr, 0, kBetweenMs);
    opened = open_udp(address, UdpUse::kReceive);
  }
  return opened;
}

}  // namespace

// What the kernel says beside a datagram.
struct Uplink::Told {
  uint8_t traffic_class = 0;
  bool fragmented = false;
  uint32_t dropped = 0;  // of the socket, since it was opened; 0: nothing is said of it
  uint32_t segment = 0;  // octets of each of several; 0: it is one

  explicit Told(std::span<uint8_t> control);
};

Uplink::Told::Told(std::span<uint8_t> control) {
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    uint32_t value = 0;
    size_t length = at->cmsg_len - CMSG_LEN(0);
    std::memcpy(&value, CMSG_DATA(at), std::min(length, sizeof value));
    bool v4 = at->cmsg_level == IPPROTO_IP, v6 = at->cmsg_level == IPPROTO_IPV6;
    if ((v4 && at->cmsg_type == IP_TOS) || (v6 && at->cmsg_type == IPV6_TCLASS)) {
      traffic_class = static_cast<uint8_t>(value);
    } else if ((v4 && at->cmsg_type == IP_RECVFRAGSIZE) ||
               (v6 && at->cmsg_type == IPV6_RECVFRAGSIZE)) {
      fragmented = value != 0;
    } else if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SO_RXQ_OVFL) {
      dropped = value;
    } else if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_GRO) {
      segment = value;
    }
  }
}

// A socket that receives.
struct Uplink::Endpoint final : DatagramListener {
  Uplink& owner;
  const Ip address;
  const Fd fd;
  uint32_t dropped = 0;

  Endpoint(Uplink& o, const Ip& a, Fd f) : owner(o), address(a), fd(std::move(f)) {}
  void received(const Datagram& datagram) override { owner.take(*this, datagram); }
  void receiving_ended(int code) override {
    owner.warn_(fmt::format("{} receives no more: {}", ip_text(address), std::strerror(code)));
  }
};

Uplink::Uplink(std::string name, PacketPool& pool, Scheduler& scheduler, Counter& stale)
    : name_(std::move(name)),
      pool_(pool),
      scheduler_(scheduler),
      stale_(stale),
      retry_(event_of<&Uplink::bind_again>(this)) {}

Uplink::~Uplink() {
  reset();
}

void Uplink::attach(Link& out, Link& in) {
  out_ = &out;
  in_ = &in;
  for (Link* link : {out_, in_}) {
    link->add_state_listener([this] { pausing_ = false; });  // as the link has forgotten
  }
}

void Uplink::serve(const Ip& address, const std::string& port, uint32_t mtu) {
  bool link_local = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
  if (!link_local) served_.push_back({address, port, mtu});
}

Result<void> Uplink::open(Engine& engine, Warn warn, At at) {
  if (engine.mode() != ClockMode::kReal) {
    return errorf(EOPNOTSUPP, "uplink {}: the kernel's network knows no virtual clock", name_);
  }
  warn_ = [this, warn](const std::string& line) { warn(fmt::format("{}: {}", name_, line)); };
  if (at == At::kTakeover) {
    bind_at_takeover();
  } else if (Result<void> bound = bind_all(); !bound) {
    return bound;
  }
  ring_ = &engine.ring();
  sender_ = std::make_unique<UdpSender>(UdpSender::Parts{
      *ring_, pool_, scheduler_, counters_, stale_, [&engine] { return engine.clock().now(); },
      [this](bool full) { pause(full); }, warn_});
  sender_->set_gso(gso_);
  Task begin = [this] {
    for (const auto& endpoint : endpoints_) listen(*endpoint);
    if (!missing_.empty()) scheduler_.after(retry_, kBetweenTries);
  };
  return engine.post(begin) ? Result<void>{} : Error{EAGAIN, "the engine is busy"};
}

Result<void> Uplink::bind_all() {
  std::string others;
  for (const Served& served : served_) {
    Result<Fd> opened = open_patiently({served.address, wire::kRocePort});
    if (opened) {
      add(served, std::move(*opened));
    } else if (opened.error().code == EADDRNOTAVAIL) {
      others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", ip_text(served.address),
                            served.port);
    } else {
      return errorf(opened.error().code, "uplink {}: {}", name_, opened.error().reason);
    }
  }
  if (endpoints_.empty()) {
    return errorf(EADDRNOTAVAIL, "uplink {}: no address behind it is this machine's: {}", name_,
                  others.empty() ? "there is no port" : others);
  }
  if (!others.empty()) warn_("not this machine's, so inside only: " + others);
  return {};
}

// Whoever uses the mount needs it more than the network: that may come back.
void Uplink::bind_at_takeover() {
  std::string others;
  bool failed = false;
  for (const Served& served : served_) {
    Result<Fd> opened = open_patiently({served.address, wire::kRocePort});
    if (opened) {
      add(served, std::move(*opened));
      continue;
    }
    missing_.push_back(served);
    others += (others.empty() ? "" : ", ") + opened.error().reason;
    failed |= opened.error().code != EADDRNOTAVAIL;
  }
  count_unbound(failed);
  if (!others.empty()) warn_(others + ": tried again each second");
}

void Uplink::bind_again(TimeNs) {
  bool failed = false;
  std::erase_if(missing_, [&](const Served& served) {
    Result<Fd> opened = open_udp({served.address, wire::kRocePort}, UdpUse::kReceive);
    if (!opened) {
      failed |= opened.error().code != EADDRNOTAVAIL;
      return false;
    }
    warn_(ip_text(served.address) + " receives again");
    add(served, std::move(*opened));
    listen(*endpoints_.back());
    return true;
  });
  count_unbound(failed);
  if (!missing_.empty()) scheduler_.after(retry_, kBetweenTries);
}

// An address that is not the machine's may never have been, unless there is no other.
void Uplink::count_unbound(bool failed) {
  if (failed || endpoints_.empty()) counters_.rx_unbound.add();
}

void Uplink::add(const Served& served, Fd socket) {
  check_mtu(served);
  check_buffer(socket.get());
  std::lock_guard lock(adding_);
  endpoints_.push_back(std::make_unique<Endpoint>(*this, served.address, std::move(socket)));
}

void Uplink::listen(Endpoint& endpoint) {
  int fd = endpoint.fd.get();
  take_batches(fd, gso_);
  ring_->receive_messages(fd, gso_ ? kBatchBuffers : kBuffers,
                          gso_ ? kLargestBatch : kLargestDatagram, endpoint);
}

void Uplink::apply(std::span<const KnobValue> values) {
  bool wanted = std::get<uint64_t>(values[knob_index(kUplinkKnobs, "gso")]) != 0;
  if (std::exchange(gso_, wanted) == wanted || !sender_) return;
  sender_->set_gso(gso_);
  for (const auto& endpoint : endpoints_) {
    ring_->stop_receiving(endpoint->fd.get());
    listen(*endpoint);
  }
}

void Uplink::check_mtu(const Served& served) {
  std::optional<Interface> interface = interface_of(served.address);
  if (!interface || served.mtu <= roce_mtu(interface->mtu)) return;
  warn_(fmt::format("{} has MTU {}, {} with its {} carries {}: longer packets will be dropped",
                    served.port, served.mtu, interface->name, interface->mtu,
                    roce_mtu(interface->mtu)));
}

// The kernel counts a packet of 4 KiB as twice that.
void Uplink::check_buffer(int fd) {
  constexpr int kEnough = 4 << 20;
  int bytes = 0;
  socklen_t length = sizeof bytes;
  (void)::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  if (bytes >= kEnough || !endpoints_.empty()) return;
  warn_(
      fmt::format("the kernel keeps {} octets of what arrives, bursts may be lost: it takes "
                  "CAP_NET_ADMIN, or the sysctl net.core.rmem_max at {}",
                  bytes, kEnough / 2));
}

std::vector<Ip> Uplink::addresses() const {
  std::lock_guard lock(adding_);
  std::vector<Ip> all;
  for (const auto& endpoint : endpoints_) all.push_back(endpoint->address);
  return all;
}

void Uplink::receive(Packet* packet, TimeNs now) {
  if (sender_) return sender_->send(packet, now);
  counters_.tx_no_socket.add();
  pool_.release(packet);
}

// As a switch whose buffer fills: all priorities, since one socket buffer holds them.
void Uplink::pause(bool wanted) {
  if (pausing_ == wanted) return;
  pausing_ = wanted;
  if (wanted) counters_.tx_pauses.add();
  for (size_t priority = 0; priority < kPriorities; ++priority) out_->send_pause(priority, wanted);
}

void Uplink::take(Endpoint& endpoint, const Datagram& datagram) {
  static_assert(kDatagramHeadroom <= Datagram::kHeadroom);
  UdpAddress from;
  bool internet = from_sockaddr(*datagram.from, from);
  Told told(datagram.control);
  if (told.dropped != 0) {
    counters_.rx_socket_drops.add(told.dropped - std::exchange(endpoint.dropped, told.dropped));
  }
  if (told.fragmented) return counters_.rx_fragments.add();
  if (datagram.truncated) return counters_.rx_too_long.add();
  if (!internet) return counters_.rx_malformed.add();
  std::span<uint8_t> rest = datagram.payload;
  size_t size = told.segment > 0 ? told.segment : rest.size();
  if (size < rest.size()) counters_.rx_batches.add();
  uint16_t place = 0;
  // The headers that each gets overwrite the one before it, which is in its packet by then.
  do {
    std::span<uint8_t> one = rest.first(std::min(size, rest.size()));
    take_packet(endpoint, from, told, one, place++);
    if (size < datagram.payload.size()) counters_.rx_batched.add();
    rest = rest.subspan(one.size());
  } while (!rest.empty());
}

void Uplink::take_packet(const Endpoint& endpoint, const UdpAddress& from, const Told& told,
                         std::span<uint8_t> bytes, uint16_t place) {
  if (bytes.size() > kLargestDatagram) return counters_.rx_too_long.add();
  if (received_count_ >= kReceived) return counters_.rx_overflows.add();
  IcrcSolver::Verdict verdict{};
  Packet* packet = packet_of_datagram(
      pool_, solver_, from, {endpoint.address, wire::kRocePort}, told.traffic_class, place,
      {bytes.data() - kDatagramHeadroom, bytes.size() + kDatagramHeadroom}, verdict);
  if (!packet) return counters_.rx_malformed.add();
  counters_.rx_packets.add();
  counters_.rx_bytes.add(packet->wire_length());
  if (verdict == IcrcSolver::Verdict::kSolved) counters_.rx_ids_solved.add();
  if (verdict == IcrcSolver::Verdict::kDamaged) counters_.rx_damaged.add();
  size_t priority = priority_of(*packet);
  received_[priority].push(packet);
  ++received_count_;
  waiting_in_ |= static_cast<uint8_t>(1u << priority);
  out_->kick();
}

Packet* Uplink::pull(TimeNs) {
  auto open = static_cast<uint8_t>(waiting_in_ & ~out_->paused());
  if (open == 0) return nullptr;
  size_t priority = turn_.next(open);
  Packet* packet = received_[priority].pop();
  --received_count_;
  if (received_[priority].empty()) waiting_in_ &= static_cast<uint8_t>(~(1u << priority));
  return packet;
}

void Uplink::reset() {
  for (PacketFifo& fifo : received_) {
    while (Packet* packet = fifo.pop()) pool_.release(packet);
  }
  if (sender_) sender_->reset();
  received_count_ = 0;
  waiting_in_ = 0;
  turn_.reset();
  pausing_ = false;
}

}  // namespace rocefs
