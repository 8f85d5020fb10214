#include "rdma/uplink/uplink.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "rdma/packet/traffic_class.h"
#include "rdma/uplink/interface.h"
#include "rdma/wire/bytes.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {

// Ancillary data of a datagram.
struct Uplink::Told {
  uint8_t traffic_class = 0;
  bool fragmented = false;
  uint32_t dropped = 0;  // datagrams dropped by the socket since it was opened; 0: not reported
  uint32_t segment = 0;  // octets per merged datagram; 0: a single one

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

// A receiving socket, of an own address or of a group.
struct Uplink::Endpoint final : DatagramListener {
  Uplink& owner;
  const Ip address;
  const Fd fd;
  uint32_t dropped = 0;
  bool group() const { return is_multicast(address); }

  Endpoint(Uplink& o, const Ip& a, Fd f) : owner(o), address(a), fd(std::move(f)) {}
  void received(const Datagram& datagram) override { owner.take(*this, datagram); }
  // The endpoint is destroyed when its address is bound again.
  void receiving_ended(int code) override {
    if (group()) {
      owner.engine_->tell_control([to = &owner, at = address] {
        to->groups_->lost(at);
        to->unbound(at);
      });
      return;
    }
    owner.engine_->tell_control(
        [to = owner.addresses_.get(), at = address, code] { to->lost(at, code); });
  }
};

Uplink::Uplink(std::string name, PacketPool& pool, Scheduler& scheduler, Counter& stale)
    : name_(std::move(name)), pool_(pool), scheduler_(scheduler), stale_(stale) {}

Uplink::~Uplink() {
  reset();
}

void Uplink::attach(Link& out, Link& in) {
  out_ = &out;
  in_ = &in;
  for (Link* link : {out_, in_}) {
    link->add_state_listener([this] { pausing_ = false; });  // the link has forgotten the pause
  }
}

void Uplink::serve(const Ip& address, UplinkedPort& port) {
  bool link_local = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
  if (!link_local) served_.push_back({address, &port});
}

Result<void> Uplink::open(Engine& engine, PollLoop& loop, Warn warn, At at, SavedAddresses* saved) {
  if (engine.mode() != ClockMode::kReal) {
    return errorf(EOPNOTSUPP, "{}: the kernel's network needs the real clock", uplink_said(name_));
  }
  if (Result<void> able = engine.io().can_receive_messages(); !able) {
    return errorf(able.error().code, "{}: {}", uplink_said(name_), able.error().reason);
  }
  engine_ = &engine;
  warn_ = [this, warn](const std::string& line) { warn(fmt::format("{}: {}", name_, line)); };
  sender_ = std::make_unique<UdpSender>(UdpSender::Parts{
      engine.io(), scheduler_, counters_, stale_, [&engine] { return engine.clock().now(); },
      [this](bool full) { pause(full); }, warn_});
  sender_->set_gso(gso_);
  groups_ = std::make_unique<UplinkGroups>(UplinkGroups::Parts{
      [this](const Ip& group, Fd socket) { group_bound(group, std::move(socket)); },
      [this](const Ip& group) { group_unbound(group); }, warn_});
  addresses_ = std::make_unique<UplinkAddresses>(
      UplinkAddresses::Parts{engine, loop,
                             [this](const Ip& ip, Fd socket) { bound(ip, std::move(socket)); },
                             [this](const Ip& ip) { unbound(ip); }, [this] { groups_->renew(); },
                             warn_, counters_.rx_unbound},
      served_);
  if (at == At::kTakeover) {
    addresses_->take_over(saved);
  } else if (Result<void> started = addresses_->start(name_, saved); !started) {
    return started;
  }
  Task begin = [this] {
    receiving_ = true;
    for (const auto& endpoint : endpoints_) listen(*endpoint);
  };
  return engine.post(begin) ? Result<void>{} : Error{EAGAIN, "the engine is busy"};
}

// Control thread, as the functions below.
void Uplink::bound(const Ip& address, Fd socket) {
  check_buffer(socket.get());
  std::optional<Interface> interface = interface_of(address);
  engine_->post_retrying([this, address, index = interface ? interface->index : 0,
                          kept = std::move(socket)]() mutable {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, address, std::move(kept)));
    sender_->set_interface(address, index);
    if (receiving_) listen(*endpoints_.back());
  });
}

void Uplink::group_bound(const Ip& group, Fd socket) {
  engine_->post_retrying([this, group, kept = std::move(socket)]() mutable {
    endpoints_.push_back(std::make_unique<Endpoint>(*this, group, std::move(kept)));
    listen(*endpoints_.back());
  });
}

void Uplink::group_unbound(const Ip& group) {
  engine_->post_retrying([this, group] {
    for (const auto& endpoint : endpoints_) {
      if (endpoint->address == group) engine_->io().stop_receiving(endpoint->fd.get());
    }
    std::erase_if(endpoints_, [&](const auto& one) { return one->address == group; });
  });
}

void Uplink::unbound(const Ip& address) {
  engine_->post_retrying([this, address] {
    std::erase_if(endpoints_, [&](const auto& one) { return one->address == address; });
  });
}

void Uplink::set_member(const UplinkedPort& port, const Ip& group, bool member) {
  if (!engine_) return;
  for (const UplinkAddresses::Served& one : served_) {
    if (one.port != &port || is_mapped_ipv4(one.address) != is_mapped_ipv4(group)) continue;
    engine_->tell_control([this, own = one.address, group, member] {
      const std::vector<Ip> ours = own_addresses();
      bool mine = std::find(ours.begin(), ours.end(), own) != ours.end();
      if (mine) groups_->set_member(own, group, member);
    });
  }
}

bool Uplink::sends_from(const Ip& own) const {
  return std::any_of(endpoints_.begin(), endpoints_.end(),
                     [&](const auto& one) { return one->address == own; });
}

void Uplink::listen(Endpoint& endpoint) {
  int fd = endpoint.fd.get();
  take_batches(fd, gso_);
  engine_->io().receive_messages(fd, gso_ ? kBatchBuffers : kBuffers,
                                 gso_ ? kMaxBatch : kMaxDatagram, endpoint);
}

void Uplink::apply(std::span<const KnobValue> values) {
  bool wanted = std::get<uint64_t>(values[knob_index(kUplinkKnobs, "gso")]) != 0;
  if (std::exchange(gso_, wanted) == wanted || !sender_) return;
  sender_->set_gso(gso_);
  if (!receiving_) return;
  for (const auto& endpoint : endpoints_) {
    engine_->io().stop_receiving(endpoint->fd.get());
    listen(*endpoint);
  }
}

// The kernel accounts a packet of 4 KiB as twice that.
void Uplink::check_buffer(int fd) {
  constexpr int kEnough = 4 << 20;
  int bytes = 0;
  socklen_t length = sizeof bytes;
  (void)::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  if (bytes >= kEnough || std::exchange(buffer_checked_, true)) return;
  warn_(
      fmt::format("the kernel keeps {} octets of what arrives, bursts may be lost: it takes "
                  "CAP_NET_ADMIN, or the sysctl net.core.rmem_max at {}",
                  bytes, kEnough / 2));
}

void Uplink::receive(Packet* arriving, TimeNs now) {
  PacketPtr packet(arriving);
  if (packet->ethernet) return;  // frames of hosts stay inside
  // To a group: every port's come here, and those of other uplinks.
  if (is_multicast(*packet) && !sends_from(source_of(*packet).ip)) return;
  drop_options(*packet);  // the kernel makes the IP header
  if (sender_) {
    engine_->listen();
    return sender_->send(std::move(packet), now);
  }
  counters_.tx_no_socket.add();
}

// Pauses like a switch whose buffer fills: all priorities, since one socket buffer holds them.
void Uplink::pause(bool wanted) {
  if (pausing_ == wanted) return;
  pausing_ = wanted;
  if (wanted) counters_.tx_pauses.add();
  for (size_t priority = 0; priority < kPriorities; ++priority) out_->send_pause(priority, wanted);
}

void Uplink::take(Endpoint& endpoint, const Datagram& datagram) {
  static_assert(kDatagramHeadroom <= Datagram::kHeadroom);
  engine_->listen();
  UdpAddress from;
  [[maybe_unused]] bool internet = from_sockaddr(*datagram.from, from);
  assert(internet);
  Told told(datagram.control);
  if (told.dropped != 0) {
    counters_.rx_socket_drops.add(told.dropped - std::exchange(endpoint.dropped, told.dropped));
  }
  if (told.fragmented) return counters_.rx_fragments.add();
  if (datagram.truncated) return counters_.rx_too_long.add();
  std::span<uint8_t> rest = datagram.payload;
  size_t size = told.segment > 0 ? told.segment : rest.size();
  if (size < rest.size()) counters_.rx_batches.add();
  uint16_t place = 0;
  // The headers of each datagram overwrite the one before it, which is copied by then.
  do {
    std::span<uint8_t> one = rest.first(std::min(size, rest.size()));
    take_packet(endpoint, from, told, one, place++);
    if (size < datagram.payload.size()) counters_.rx_batched.add();
    rest = rest.subspan(one.size());
  } while (!rest.empty());
}

void Uplink::take_packet(const Endpoint& endpoint, const UdpAddress& from, const Told& told,
                         std::span<uint8_t> bytes, uint16_t place) {
  if (endpoint.group() && inside_ && inside_(from.ip)) return;
  if (bytes.size() > kMaxDatagram) return counters_.rx_too_long.add();
  if (received_count_ >= kReceived) return counters_.rx_overflows.add();
  IcrcSolver::Verdict verdict{};
  PacketPtr packet = packet_of_datagram(
      pool_, solver_, from, {endpoint.address, wire::kRocePort}, told.traffic_class, place,
      {bytes.data() - kDatagramHeadroom, bytes.size() + kDatagramHeadroom}, verdict);
  if (!packet) return counters_.rx_malformed.add();
  counters_.rx_packets.add();
  counters_.rx_bytes.add(packet->wire_length());
  if (verdict == IcrcSolver::Verdict::kSolved) counters_.rx_ids_solved.add();
  if (verdict == IcrcSolver::Verdict::kDamaged) counters_.rx_damaged.add();
  size_t priority = priority_of(*packet);
  received_[priority].push(std::move(packet));
  ++received_count_;
  waiting_in_ |= static_cast<uint8_t>(1u << priority);
  out_->kick();
}

Packet* Uplink::pull(TimeNs) {
  auto open = static_cast<uint8_t>(waiting_in_ & ~out_->paused());
  if (open == 0) return nullptr;
  size_t priority = turn_.next(open);
  PacketPtr packet = received_[priority].pop();
  turn_.sent(priority, packet->wire_length() + kEthernetOverhead);
  --received_count_;
  if (received_[priority].empty()) waiting_in_ &= static_cast<uint8_t>(~(1u << priority));
  return packet.release();
}

void Uplink::reset() {
  for (PacketFifo& fifo : received_) fifo.clear();
  if (sender_) sender_->reset();
  received_count_ = 0;
  waiting_in_ = 0;
  turn_.reset();
  pausing_ = false;
}

}  // namespace rocefs
