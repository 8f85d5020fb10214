// Sockets by source port, and the packets handed to them.
#include "rdma/uplink/udp_sender.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>

#include "rdma/wire/ip_text.h"
#include "test/each_loop.h"
#include "test/rdma/uplink/sending.h"
#include "test/rdma/uplink/uplinked.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Ip loopback(unsigned host) {
  auto pid = static_cast<unsigned>(::getpid());
  return mapped_ipv4({127, static_cast<uint8_t>(64 + (pid >> 8) % 128),
                      static_cast<uint8_t>(pid % 256), static_cast<uint8_t>(host)});
}

// The length of the received datagram, with DSCP and ECN.
ssize_t receive(int fd, std::span<uint8_t> bytes, int& tos) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) uint8_t control[256];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t length = ::recvmsg(fd, &message, MSG_DONTWAIT);
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_TOS) tos = *CMSG_DATA(at);
  }
  return length;
}

}  // namespace

TEST_CASE(
    "udp sockets: there is one socket per port, and the least recently used idle one is closed") {
  std::vector<std::string> said;
  UdpSockets sockets(3, [&](const std::string& line) { said.push_back(line); });
  auto from = [](unsigned port) { return UdpAddress{loopback(21), static_cast<uint16_t>(port)}; };
  auto is_free = [&](unsigned port) { return bool(open_udp(from(port), UdpUse::kSend)); };
  std::vector<int> fds;
  for (unsigned port : {0xc000, 0xc001, 0xc002}) {
    fds.push_back(sockets.find(from(port), 0));
    REQUIRE(fds.back() >= 0);
  }
  CHECK(sockets.find(from(0xc000), 0) == fds[0]);
  CHECK(said.empty());
  auto busy = [&](unsigned port, int change) {
    REQUIRE(sockets.find(from(port), 0) >= 0);
    sockets.found().under_way += static_cast<size_t>(change);
  };
  busy(0xc001, 1);
  CHECK(sockets.find(from(0xc002), 0) == fds[2]);
  CHECK(sockets.find(from(0xc000), 0) == fds[0]);
  int fourth = sockets.find(from(0xc003), 0);
  CHECK(fourth >= 0);
  CHECK(sockets.open() == 3);
  CHECK(is_free(0xc002));  // 0xc001 is older, but has something under way
  CHECK(sockets.find(from(0xc001), 0) == fds[1]);
  for (unsigned port : {0xc000, 0xc001, 0xc003}) busy(port, 1);
  CHECK(sockets.find(from(0xc002), 0) == -EBUSY);
  CHECK(sockets.find(from(0xc003), 0) == fourth);
  busy(0xc001, -1);
  CHECK(sockets.find(from(0xc002), 0) == -EBUSY);
  busy(0xc001, -1);
  CHECK(sockets.find(from(0xc002), 0) >= 0);
  CHECK(is_free(0xc001));
  CHECK(said == std::vector<std::string>{
                    "more than 3 UDP source ports are in use: sockets are closed and opened again "
                    "for them; a higher limit of open files (ulimit -n) may allow more"});
  busy(0xc000, -1);
  auto other = open_udp(from(0xc001), UdpUse::kSend);
  REQUIRE(other);
  CHECK(sockets.find(from(0xc001), 0) == -EADDRINUSE);
  other->reset();
  CHECK(sockets.find(from(0xc001), kSecond - 1) == -EADDRINUSE);
  CHECK(sockets.find(from(0xc001), kSecond) >= 0);
  UdpAddress foreign{mapped_ipv4({192, 0, 2, 1}), 0xc000};
  CHECK(sockets.find(foreign, 0) == -EADDRNOTAVAIL);
  CHECK(sockets.open() <= 3);
}

TEST_CASE("udp sockets: without free descriptors idle sockets are closed for others") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  UdpSockets sockets(100, [](const std::string&) {});
  auto from = [](unsigned port) { return UdpAddress{loopback(25), static_cast<uint16_t>(port)}; };
  int first = sockets.find(from(0xc000), 0);
  ++sockets.found().under_way;
  int second = sockets.find(from(0xc001), 0);
  rlimit few{static_cast<rlim_t>(std::max(first, second)) + 1, limit.rlim_max};
  std::vector<Fd> rest;  // below the limit
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  while (rest.empty() || rest.back()) rest.emplace_back(::dup(first));
  CHECK(sockets.find(from(0xc002), 0) == second);
  ++sockets.found().under_way;
  CHECK(sockets.find(from(0xc003), 0) == -EMFILE);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(sockets.find(from(0xc003), kSecond) >= 0);
}

TEST_CASE("udp sender: excess packets wait, the cable is told, and all arrive in order") {
  ON_EACH_LOOP();
  Sending all;
  auto receiver = open_udp({loopback(23), wire::kRocePort}, UdpUse::kReceive);
  REQUIRE(receiver);
  constexpr uint32_t kPackets = 2000;
  CnpAddress address = address_of(loopback(22), loopback(23), 0xc0de);
  auto send = [&](uint32_t number) {
    address.dest_qpn = number;
    all.sender->send(make_cnp(all.pool, address), 0);
  };
  for (uint32_t i = 0; i < kPackets; ++i) send(i);
  CHECK(all.told == std::vector<bool>{true});
  CHECK(all.outstanding.packets == kPackets);
  while (all.outstanding.packets > 0) all.run();
  CHECK(all.told == std::vector<bool>{true, false});
  CHECK(all.counters.tx_packets.get() == kPackets);
  CHECK(all.counters.tx_bytes.get() == kPackets * 60);  // IPv4, UDP, BTH, a CNP's 16, ICRC
  CHECK(all.counters.tx_batches.get() == 0);
  for (uint32_t i = 0; i < kPackets; ++i) {
    uint8_t bytes[64];
    int tos = -1;
    REQUIRE(receive(receiver->get(), bytes, tos) == 32);
    REQUIRE(tos == 0xc2);
    REQUIRE((bytes[5] << 16 | bytes[6] << 8 | bytes[7]) == static_cast<int>(i));
  }

  // An ICMP error for a packet does not cost the next one.
  address.to = loopback(24);
  for (uint32_t i = 0; i < 4; ++i) {
    send(i);
    while (all.outstanding.packets > 0) all.run();
  }
  CHECK(all.counters.tx_packets.get() == kPackets + 4);
  CHECK(all.counters.tx_errors.get() == 0);
  CHECK(all.counters.icmp_refused.get() >= 3);
  REQUIRE(all.warnings.size() == 1);
  CHECK(all.warnings[0] ==
        "a packet to " + ip_text(loopback(24)) + " came back: Connection refused");
  all.warnings.clear();
  address.to = loopback(23);

  // Each reason is reported once for a while, and counted each time.
  address.from = mapped_ipv4({192, 0, 2, 1});
  for (uint32_t i = 0; i < 5; ++i) send(i);
  CHECK(all.counters.tx_no_socket.get() == 5);
  REQUIRE(all.warnings.size() == 1);
  CHECK(all.warnings[0] ==
        "cannot send from 192.0.2.1, UDP port 49374: Cannot assign requested address");
  // No network leads from this machine's loopback to others.
  address.from = loopback(22);
  address.to = mapped_ipv4({240, 0, 0, 1});
  send(0);
  while (all.outstanding.packets > 0) all.run();
  CHECK(all.counters.tx_packets.get() == kPackets + 4);
  CHECK(all.warnings.size() == 2);
  all.sender.reset();
  CHECK(all.outstanding.packets == 0);
}

TEST_CASE(
    "udp sender: with gso packets are batched where they may be, and each is valid by itself") {
  ON_EACH_LOOP();
  Sending all;
  all.sender->set_gso(true);
  auto receiver = open_udp({loopback(25), wire::kRocePort}, UdpUse::kReceive);
  REQUIRE(receiver);
  CnpAddress one = address_of(loopback(24), loopback(25), 0xc001), other = one;
  other.source_port = 0xc002;
  const IcrcSolver solver;
  uint32_t number = 0;
  constexpr uint16_t kAsks = 0x8000;  // for an acknowledgement
  auto send = [&](const CnpAddress& from, uint16_t payload, bool seen = false) {
    CnpAddress address = from;
    address.dest_qpn = number++;
    PacketPtr packet = all.packet(address, payload & ~kAsks);
    if (payload & kAsks) packet->header[28 + 8] |= 0x80;
    if (seen) REQUIRE(materialize(*packet));
    all.sender->send(std::move(packet), 0);
  };
  struct Row {
    std::vector<std::pair<const CnpAddress*, uint16_t>> packets;
    uint64_t batches, batched;
  };
  CnpAddress marked = one;
  marked.traffic_class = 0xc3;
  std::vector<std::pair<const CnpAddress*, uint16_t>> many(33, {&one, 8}), large(16, {&one, 4080});
  const Row rows[] = {
      {{{&one, 100}}, 0, 0},
      {{{&one, 100}, {&one, 100}, {&one, 4}, {&one, 4}}, 1, 3},  // a shorter one ends
      {{{&one, 100}, {&one, 100 | kAsks}, {&one, 100}}, 1, 2},   // so does one that asks
      {{{&one, 4}, {&one, 100}}, 0, 0},
      {{{&one, 4}, {&other, 4}, {&one, 4}, {&other, 4}}, 2, 4},
      {{{&one, 4}, {&marked, 4}, {&one, 4}}, 0, 0},
      {many, 1, 32},
      {large, 1, 15}};
  for (const Row& row : rows) {
    uint64_t batches = all.counters.tx_batches.get(), batched = all.counters.tx_batched.get();
    for (auto [from, payload] : row.packets) send(*from, payload);
    while (all.outstanding.packets > 0) all.run();
    CAPTURE(row.packets.size(), all.warnings);
    CHECK(all.counters.tx_batches.get() - batches == row.batches);
    CHECK(all.counters.tx_batched.get() - batched == row.batched);
    // The socket that receives takes no batches: the kernel has cut them, and counted IP IDs.
    uint64_t numbered = 0;
    for (size_t i = 0; i < row.packets.size(); ++i) {
      std::array<uint8_t, kDatagramHeadroom + 5000> room{};
      int tos = -1;
      ssize_t length = receive(receiver->get(), std::span(room).subspan(kDatagramHeadroom), tos);
      REQUIRE(length == 32 + (row.packets[i].second & ~kAsks));
      CHECK(tos == row.packets[i].first->traffic_class);
      IcrcSolver::Verdict verdict{};
      auto octets = std::span(room).first(kDatagramHeadroom + static_cast<size_t>(length));
      PacketPtr packet = packet_of_datagram(
          all.pool, solver, {one.from, one.source_port}, {one.to, wire::kRocePort},
          row.packets[i].first->traffic_class, 0, octets, verdict);
      REQUIRE(packet);
      // The other source port is a wrong one here.
      if (row.batches < 2) CHECK(verdict != IcrcSolver::Verdict::kDamaged);
      numbered += verdict == IcrcSolver::Verdict::kSolved;
    }
    if (row.batches < 2) CHECK(numbered == row.batched - row.batches);
  }
  // A captured packet leaves as it is.
  uint64_t batches = all.counters.tx_batches.get();
  for (int i = 0; i < 4; ++i) send(one, 100, true);
  while (all.outstanding.packets > 0) all.run();
  CHECK(all.counters.tx_batches.get() == batches);
}

TEST_CASE("udp sender: with gso a queue pair's packets keep their order across its source ports") {
  ON_EACH_LOOP();
  Sending all;
  all.sender->set_gso(true);
  auto receiver = open_udp({loopback(27), wire::kRocePort}, UdpUse::kReceive);
  REQUIRE(receiver);
  uint8_t sent[65] = {}, come[65] = {};
  // Source port, queue pair.
  struct Leaving {
    uint16_t port;
    uint32_t qpn;
  };
  struct Row {
    std::vector<Leaving> packets;
    uint64_t batches;
  };
  const Row rows[] = {
      {{{1, 0}, {1, 0}, {2, 0}, {2, 0}, {3, 0}, {1, 0}, {1, 0}},
       3},                                            // a batch stays open for a while
      {{{2, 1}, {1, 0}, {1, 0}, {2, 0}, {2, 0}}, 2},  // it joins the open batch
      {{{2, 1}, {1, 0}, {2, 0}, {1, 0}, {2, 1}}, 1},
      {{{1, 0}, {2, 1}, {3, 2}, {1, 0}, {2, 1}, {3, 2}}, 3},  // others are not in the way
      {{{1, 0}, {2, 64}, {1, 0}, {2, 64}}, 2}};
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    uint64_t before = all.counters.tx_batches.get();
    for (auto [port, qpn] : row.packets) {
      CnpAddress address =
          address_of(loopback(26), loopback(27), static_cast<uint16_t>(0xc000 | port));
      address.dest_qpn = qpn;
      PacketPtr packet = all.packet(address, 100);
      packet->header[28 + 11] = sent[qpn]++;
      all.sender->send(std::move(packet), 0);
    }
    while (all.outstanding.packets > 0) all.run();
    CHECK(all.counters.tx_batches.get() - before == row.batches);
    for (size_t i = 0; i < row.packets.size(); ++i) {
      uint8_t bytes[200];
      int tos = -1;
      REQUIRE(receive(receiver->get(), bytes, tos) == 132);
      REQUIRE(bytes[7] <= 64);
      CHECK(bytes[11] == come[bytes[7]]++);
    }
  }
}

TEST_CASE("udp sender: a socket without buffer space holds back only its own packets, in order") {
  ON_EACH_LOOP();
  // In a separate network, with a neighbour that does not answer: the kernel keeps the packets to
  // it. The network ends with the thread.
  bool made = false;
  auto work = [&] {
    auto done = [](const char* command) { return std::system(command) == 0; };
    made = ::unshare(CLONE_NEWNET) == 0 &&
           done(
               "ip link set lo up && ip link add near mtu 4200 type veth peer name far mtu 4200 && "
               "ip addr add 10.9.0.1/24 dev near && ip link set near up && ip link set far up && "
               "echo 100000000 >/proc/sys/net/ipv4/neigh/near/unres_qlen_bytes");
    if (!made) return;
    Sending all;
    auto receiver = open_udp({mapped_ipv4({127, 0, 0, 3}), wire::kRocePort}, UdpUse::kReceive);
    Fd wire(::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_IP)));
    int large = 64 << 20;
    REQUIRE(::setsockopt(wire.get(), SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large) == 0);
    CnpAddress stuck = address_of(mapped_ipv4({10, 9, 0, 1}), mapped_ipv4({10, 9, 0, 9}), 0xc001);
    CnpAddress free = address_of(mapped_ipv4({127, 0, 0, 2}), mapped_ipv4({127, 0, 0, 3}), 0xc002);
    constexpr uint32_t kStuck = 2800, kFree = 100;
    for (uint32_t i = 0; i < kStuck; ++i) {
      stuck.dest_qpn = i;
      all.sender->send(all.packet(stuck, 4096), 0);
      all.run();
    }
    uint64_t before = all.counters.tx_packets.get();
    CHECK(before > 100);
    CHECK(before < kStuck);
    for (uint32_t i = 0; i < kFree; ++i) all.sender->send(all.packet(free, 4096), 0);
    for (int i = 0; i < 10; ++i) all.run();
    CHECK(all.counters.tx_packets.get() == before + kFree);
    CHECK(all.told != std::vector<bool>{true});
    // Too many packets that are held back hold back all others.
    for (uint32_t i = 0; i < UdpSender::kWaiting; ++i) all.sender->send(all.packet(stuck, 0), 0);
    CHECK(all.told.back() == true);
    REQUIRE(done("ip neigh replace 10.9.0.9 lladdr 02:00:00:00:00:09 dev near"));
    while (all.outstanding.packets > 0) all.run();
    CHECK(all.told.back() == false);
    uint32_t next = 0;
    std::array<uint8_t, 64> head;
    for (ssize_t got; (got = ::recv(wire.get(), head.data(), head.size(), MSG_TRUNC)) > 0;) {
      bool ours = head[9] == 17 && head[19] == 9 && got > 4000;
      if (ours) REQUIRE((head[33] << 16 | head[34] << 8 | head[35]) == static_cast<int>(next++));
    }
    CHECK(next == kStuck);

    // An interface that cannot carry a batch's packets, nor one of them.
    REQUIRE(done("ip link set near mtu 1500"));
    all.sender->set_gso(true);
    for (int i = 0; i < 2; ++i) all.sender->send(all.packet(stuck, 4096), 0);
    while (all.outstanding.packets > 0) all.run();
    CHECK(all.counters.tx_batches_refused.get() == 1);
    CHECK(all.counters.tx_too_long.get() == 2);
    CHECK(all.counters.tx_batches.get() == 0);
  };
  std::thread(work).join();
  if (!made) WARN("skipped: no network of its own");
}
