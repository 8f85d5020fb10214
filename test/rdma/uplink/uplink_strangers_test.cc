// Unwanted datagrams from the kernel's network: each has its counter, the queue pair that it is
// addressed to accepts valid packets afterwards, and the traffic of others continues.
#include <netinet/udp.h>

#include "test/each_loop.h"
#include "test/here.h"
#include "test/rdma/uplink/own_network.h"
#include "test/rdma/uplink/replayed.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Ip ip_of(const std::string& text) {
  return gids_of(uplink_topology(text)->devices[0].ports[0]).at(1);
}

// Two hosts with traffic, and a scripted peer that has a connection with the far one, too.
struct Street {
  static constexpr uint32_t kOldPsn = 900, kPsn = 1000, kPeerQpn = 0x11;
  Host near{loopback_address(32)}, far{loopback_address(33)};
  Peer peer{ip_of(loopback_address(34)), far.gid()};
  Peer stranger{ip_of(loopback_address(35)), far.gid()};
  std::optional<End> victim;
  uint32_t old_qpn = 0;

  Street() {
    near.connect(far);
    far.connect(near);
    fill(near.bytes(), 6);
    {
      End old(far, far.gid(), peer.address(), QpType::kRc, attributes(kOldPsn));
      old_qpn = old.number();
    }
    victim.emplace(far, far.gid(), peer.address(), QpType::kRc, attributes(kPsn));
  }

  static QpAttributes attributes(uint32_t psn) {
    QpAttributes attributes;
    attributes.receive_psn = attributes.send_psn = psn;
    attributes.remote_qpn = kPeerQpn;
    return attributes;
  }
  // Right in everything: WRITE Only of 16 octets to the victim.
  Spoken right(uint32_t psn = kPsn) {
    Spoken spoken;
    spoken.headers.v4.id = 0x4711;
    spoken.headers.v4.flags_fragment = 0x4000;
    spoken.headers.v4.ttl = 64;
    spoken.headers.v4.protocol = IPPROTO_UDP;
    spoken.headers.udp.src_port = 0xc111;
    spoken.headers.udp.dst_port = wire::kRocePort;
    spoken.headers.bth.opcode = wire::Opcode::kRcWriteOnly;
    spoken.headers.bth.pkey = 0xffff;
    spoken.headers.bth.dest_qpn = victim->number();
    spoken.headers.bth.ack_req = true;
    spoken.headers.bth.psn = psn;
    spoken.headers.reth = {Host::kAddress + End::kTargets, far.key, 16};
    spoken.payload.assign(16, 0xab);
    return spoken;
  }
  // The neighbours' traffic: started before the bad packet, complete afterwards.
  void begin_traffic() { near.post(near.request(SendOp::kWrite, far, 0, 0, kTraffic)); }
  void end_traffic() {
    near.expect_success(1);
    CHECK(std::equal(near.bytes().begin(), near.bytes().begin() + kTraffic, far.bytes().begin()));
  }
  static constexpr uint32_t kTraffic = 200'000;
};

struct Row {
  const char* name;
  Counter& (*counter)(Street&);
  void (*spoil)(Street&, Spoken&);
  bool from_stranger = false;
  bool answered = false;
};

Counter& malformed(Street& street) {
  return street.far.uplink().counters().rx_malformed;
}
Counter& unknown(Street& street) {
  return street.far.counters().rx_unknown_qp;
}
Counter& duplicate(Street& street) {
  return street.far.counters().duplicate_request;
}
Counter& ahead(Street& street) {
  return street.far.counters().out_of_sequence;
}

const Row kRows[] = {
    {"a transport version of 1", malformed, [](Street&, Spoken& s) { s.headers.bth.tver = 1; }},
    {"a P_Key of another partition",
     [](Street& t) -> Counter& { return t.far.counters().rx_wrong_pkey; },
     [](Street&, Spoken& s) { s.headers.bth.pkey = 0x8123; }},
    {"from another address", unknown, [](Street&, Spoken&) {}, true},
    {"for a queue pair that has gone", unknown,
     [](Street& t, Spoken& s) { s.headers.bth.dest_qpn = t.old_qpn; }},
    {"of another service", unknown,
     [](Street&, Spoken& s) { s.headers.bth.opcode = wire::Opcode::kUcWriteOnly; }},
    {"a stranger's READ", unknown,
     [](Street&, Spoken& s) {
       s.headers.bth.opcode = wire::Opcode::kRcReadRequest;
       s.payload.clear();
     },
     true},
    {"a stranger's CNP", [](Street& t) -> Counter& { return t.far.counters().rp_cnp_ignored; },
     [](Street&, Spoken& s) {
       s.headers.bth.opcode = wire::Opcode::kCnp;
       s.payload.clear();
     },
     true},
    {"an acknowledgement of nothing",
     [](Street& t) -> Counter& { return t.far.counters().port_rcv_packets; },
     [](Street&, Spoken& s) {
       s.headers.bth.opcode = wire::Opcode::kRcAck;
       s.headers.aeth = {aeth::kAckUnlimited, 77};
       s.payload.clear();
     }},
    {"more payload than any MTU", malformed,
     [](Street&, Spoken& s) {
       s.headers.bth.opcode = wire::Opcode::kRcSendOnly;
       s.payload.assign(kMaxMtu + 16, 1);
     }},
    {"more than any packet",
     [](Street& t) -> Counter& { return t.far.uplink().counters().rx_too_long; },
     [](Street&, Spoken& s) { s.payload.assign(9000, 1); }},
    {"a PSN of an earlier connection", duplicate,
     [](Street&, Spoken& s) { s.headers.bth.psn = Street::kOldPsn; }, false, true},
    {"a PSN far ahead", ahead, [](Street&, Spoken& s) { s.headers.bth.psn = Street::kPsn + 100; },
     false, true},
};

bool reaches(const Counter& counter, uint64_t wanted) {
  for (TimeNs until = monotonic_ns() + 10 * kSecond; monotonic_ns() < until;) {
    if (counter.get() >= wanted) return counter.get() == wanted;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("uplink: each invalid packet is counted and affects nobody else") {
  ON_EACH_LOOP();
  Street street;
  Bytes zeros(16), sixteen(16, 0xab);
  street.victim->put(End::kTargets, zeros);
  for (const Row& row : kRows) {
    INFO(row.name);
    uint64_t before = row.counter(street).get();
    bool busy = &row.counter(street) != &street.far.counters().port_rcv_packets;
    if (busy) street.begin_traffic();
    Spoken bad = street.right();
    row.spoil(street, bad);
    (row.from_stranger ? street.stranger : street.peer).send(bad);
    CHECK(reaches(row.counter(street), before + 1));
    if (busy) street.end_traffic();
    if (row.answered) CHECK(street.peer.hear(10 * kSecond));
    CHECK_FALSE(street.peer.hear(2 * kMillisecond));
    CHECK_FALSE(street.stranger.hear(kMillisecond));
    CHECK(street.victim->bytes(End::kTargets, 16) == zeros);
    CHECK(street.victim->state() == QpState::kRts);
  }
  street.peer.send(street.right());
  std::optional<Spoken> heard = street.peer.hear(10 * kSecond);
  REQUIRE(heard);
  CHECK(heard->headers.aeth == wire::Aeth{aeth::kAckUnlimited, 1});
  CHECK(heard->headers.bth.psn == Street::kPsn);
  CHECK(street.victim->bytes(End::kTargets, 16) == sixteen);
  CHECK(street.far.counters().rx_icrc_encapsulated.get() == 0);
}

TEST_CASE("uplink: a payload above the path MTU ends only its own connection") {
  ON_EACH_LOOP();
  Street street;
  street.begin_traffic();
  Spoken jumbo = street.right();
  jumbo.payload.assign(2 * End::kMtu, 0xab);
  jumbo.headers.reth.dma_len = 2 * End::kMtu;
  street.peer.send(jumbo);
  std::optional<Spoken> heard = street.peer.hear(10 * kSecond);
  REQUIRE(heard);
  CHECK(heard->headers.aeth == wire::Aeth{aeth::kNakInvalidRequest, 0});
  street.end_traffic();
  CHECK(street.victim->state() == QpState::kError);
  CHECK(street.victim->bytes(End::kTargets, 16) == Bytes(16));
}

TEST_CASE("uplink: a flood of small datagrams is counted, and other traffic stays right") {
  ON_EACH_LOOP();
  Street street;
  UplinkCounters& counters = street.far.uplink().counters();
  auto out = open_udp({ip_of(loopback_address(36)), 0}, UdpUse::kSend);
  REQUIRE(out);
  sockaddr_storage name{};
  socklen_t length = to_sockaddr({street.far.gid(), wire::kRocePort}, name);
  constexpr uint64_t kFlood = 100'000, kEvery = 10'000;
  Bytes whole = street.stranger.bytes_of(street.right());
  whole.erase(whole.begin(), whole.begin() + wire::kIpv4Len + wire::kUdpLen);
  whole.back() ^= 0x5a;
  for (uint64_t i = 0; i < kFlood; ++i) {
    if (i % kEvery == 0) street.begin_traffic();
    size_t size =
        i % 2 == 0 ? whole.size() : i % 60;  // an ICRC of nobody's; too short or no opcode
    if (i % 2 == 1) whole[0] = 0xff;
    (void)::sendto(out->get(), whole.data(), size, 0, reinterpret_cast<sockaddr*>(&name), length);
    whole[0] = 0x0a;
    if (i % kEvery == kEvery - 1) street.end_traffic();
  }
  // The kernel reports the number of dropped datagrams with the next one.
  street.begin_traffic();
  street.end_traffic();
  auto seen = [&] {
    return counters.rx_malformed.get() + counters.rx_damaged.get() +
           counters.rx_socket_drops.get() + counters.rx_overflows.get();
  };
  for (TimeNs until = monotonic_ns() + 10 * kSecond; seen() < kFlood && monotonic_ns() < until;) {
    std::this_thread::yield();
  }
  CHECK(seen() >= kFlood);
  CHECK(counters.rx_malformed.get() > 0);
  CHECK(counters.rx_damaged.get() > 0);
  CHECK(counters.rx_damaged.get() == street.far.counters().rx_icrc_encapsulated.get());
  CHECK(street.victim->state() == QpState::kRts);
}

TEST_CASE("uplink: a fragmented datagram is dropped") {
  if (!has_option(AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_RECVFRAGSIZE))
    skip("no IP_RECVFRAGSIZE here");
  ON_EACH_LOOP();
  OwnNetwork network({}, 1500);
  if (!network.ready()) skip("only root makes a network namespace");
  Street street;
  Spoken spoken = street.right();
  spoken.headers.v4.id = 0;  // as the kernel may choose it, or not: nobody looks
  spoken.payload.assign(2000, 0xab);
  Bytes bytes = street.peer.bytes_of(spoken);
  Fd out(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage name{};
  socklen_t length = to_sockaddr({street.peer.address(), 0xc222}, name);
  REQUIRE(::bind(out.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  int no = IP_PMTUDISC_DONT;
  REQUIRE(::setsockopt(out.get(), IPPROTO_IP, IP_MTU_DISCOVER, &no, sizeof no) == 0);
  length = to_sockaddr({street.far.gid(), wire::kRocePort}, name);
  constexpr size_t kBefore = wire::kIpv4Len + wire::kUdpLen;
  REQUIRE(::sendto(out.get(), bytes.data() + kBefore, bytes.size() - kBefore, 0,
                   reinterpret_cast<sockaddr*>(&name), length) > 0);
  CHECK(reaches(street.far.uplink().counters().rx_fragments, 1));
  street.peer.send(street.right());
  CHECK(street.peer.hear(10 * kSecond));
  CHECK(street.far.uplink().counters().rx_packets.get() == 1);
  CHECK(street.far.uplink().counters().rx_bytes.get() == 20 + 8 + 12 + 16 + 16 + 4);
}

namespace {

// Whether the kernel tells how many datagrams a socket has dropped.
bool tells_drops() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int yes = 1;
  return ::setsockopt(socket.get(), SOL_SOCKET, SO_RXQ_OVFL, &yes, sizeof yes) == 0;
}

// Datagrams of an unknown sender to the far host's port.
struct Sender {
  Street& street;
  Fd out = std::move(*open_udp({ip_of(loopback_address(36)), 0}, UdpUse::kSend));
  void send(std::span<const uint8_t> bytes) {
    sockaddr_storage name{};
    socklen_t length = to_sockaddr({street.far.gid(), wire::kRocePort}, name);
    REQUIRE(::sendto(out.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&name),
                     length) == static_cast<ssize_t>(bytes.size()));
  }
};

}  // namespace

TEST_CASE("uplink: datagrams that the kernel drops are counted exactly") {
  if (!tells_drops()) skip("no SO_RXQ_OVFL here");
  ON_EACH_LOOP();
  Street street;
  Sender sender{street};
  UplinkCounters& counters = street.far.uplink().counters();
  constexpr uint64_t kSent = 40'000;  // each takes some 800 octets of 16 MiB
  const uint8_t nothing[1] = {};
  street.far.on_core([&] {
    for (uint64_t i = 0; i < kSent; ++i) sender.send(nothing);
  });
  // The kernel reports dropped datagrams with the next one.
  uint64_t more = 0;
  CHECK(street.far.comes([&] {
    sender.send(nothing);
    ++more;
    return counters.rx_socket_drops.get() > 0;
  }));
  CHECK(street.far.comes([&] {
    return counters.rx_malformed.get() + counters.rx_socket_drops.get() == kSent + more;
  }));
}

TEST_CASE("uplink: a limited number of packets waits for a slow cable, and the rest is lost") {
  ON_EACH_LOOP();
  Street street;
  Sender sender{street};
  UplinkCounters& counters = street.far.uplink().counters();
  street.far.on_core([&] {
    LinkParameters slow;
    slow.rate_bps = 1000;  // half a second for each of these
    set(*street.far.fabric->link("uplink-sw_0"), slow);
  });
  Bytes whole = street.stranger.bytes_of(street.right());
  constexpr uint64_t kSent = 5000, kWaiting = 4096;
  for (uint64_t i = 0; i < kSent; ++i) {
    sender.send(std::span(whole).subspan(wire::kIpv4Len + wire::kUdpLen));
  }
  CHECK(street.far.comes(
      [&] { return counters.rx_packets.get() + counters.rx_overflows.get() == kSent; }));
  CHECK(counters.rx_overflows.get() <= kSent - kWaiting);
  CHECK(counters.rx_overflows.get() >= kSent - kWaiting - 20);  // on the cable in ten seconds
}

TEST_CASE("uplink: datagrams that are too long are detected in a batch, too") {
  ON_EACH_LOOP();
  Street street;
  Sender sender{street};
  UplinkCounters& counters = street.far.uplink().counters();
  street.far.on_core([&] { street.far.uplink().apply(std::vector<KnobValue>{uint64_t{1}}); });
  int segment = 5000, yes = 0;
  REQUIRE(::setsockopt(sender.out.get(), SOL_SOCKET, SO_NO_CHECK, &yes, sizeof yes) == 0);
  REQUIRE(::setsockopt(sender.out.get(), IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0);
  sender.send(Bytes(3 * 5000));
  CHECK(reaches(counters.rx_too_long, 3));
  CHECK(counters.rx_batches.get() == 1);
  CHECK(counters.rx_packets.get() == 0);
}
