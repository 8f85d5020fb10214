// Sockets by source port, and what is handed to them.
#include "rdma/udp_sender.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/engine.h"
#include "rdma/cnp.h"
#include "rdma/ip_text.h"
#include "test/rdma/uplinked.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Ip loopback(unsigned host) {
  auto pid = static_cast<unsigned>(::getpid());
  return mapped_ipv4({127, static_cast<uint8_t>(64 + (pid >> 8) % 128),
                      static_cast<uint8_t>(pid % 256), static_cast<uint8_t>(host)});
}

// The length of what has come, with DSCP and ECN.
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

TEST_CASE("udp sockets: one for each port, of the idle ones the least recently used is closed") {
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
  sockets.begin(fds[1]);
  int fourth = sockets.find(from(0xc003), 0);
  CHECK(fourth >= 0);
  CHECK(sockets.open() == 3);
  CHECK(is_free(0xc002));  // 0xc001 is older, but has something under way
  CHECK(sockets.find(from(0xc001), 0) == fds[1]);
  sockets.begin(fds[0]);
  sockets.begin(fds[1]);
  sockets.begin(fourth);
  CHECK(sockets.find(from(0xc002), 0) == -EBUSY);
  CHECK(sockets.find(from(0xc003), 0) == fourth);
  sockets.end(fds[1]);
  CHECK(sockets.find(from(0xc002), 0) == -EBUSY);
  sockets.end(fds[1]);
  CHECK(sockets.find(from(0xc002), 0) >= 0);
  CHECK(is_free(0xc001));
  CHECK(said == std::vector<std::string>{
                    "more than 3 UDP source ports are in use: sockets are closed and opened again "
                    "for them; a higher limit of open files (ulimit -n) may allow more"});
  sockets.end(fds[0]);
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

TEST_CASE("udp sockets: where there are no more descriptors, idle sockets are closed for others") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  UdpSockets sockets(100, [](const std::string&) {});
  auto from = [](unsigned port) { return UdpAddress{loopback(25), static_cast<uint16_t>(port)}; };
  int first = sockets.find(from(0xc000), 0), second = sockets.find(from(0xc001), 0);
  sockets.begin(first);
  rlimit few{static_cast<rlim_t>(std::max(first, second)) + 1, limit.rlim_max};
  std::vector<Fd> rest;  // below the limit
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  while (rest.empty() || rest.back()) rest.emplace_back(::dup(first));
  CHECK(sockets.find(from(0xc002), 0) == second);
  sockets.begin(second);
  CHECK(sockets.find(from(0xc003), 0) == -EMFILE);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(sockets.find(from(0xc003), kSecond) >= 0);
}

TEST_CASE("udp sender: what is too much waits, the cable is told, and all arrive in order") {
  NEEDS_IO_URING();
  auto ring = IoRing::create(256);
  REQUIRE(ring);
  (*ring)->enable();
  Outstanding outstanding;
  PacketPool pool(outstanding);
  Scheduler scheduler;
  UplinkCounters counters;
  std::vector<bool> told;
  std::vector<std::string> warnings;
  auto receiver = open_udp({loopback(23), wire::kRocePort}, UdpUse::kReceive);
  REQUIRE(receiver);
  {
    UdpSender sender({**ring, pool, scheduler, counters,
                      [&](bool full) {
                        if (told.empty() || told.back() != full) told.push_back(full);
                      },
                      [&](const std::string& line) { warnings.push_back(line); }});
    constexpr uint32_t kPackets = 400;
    CnpAddress address;
    address.from = loopback(22);
    address.to = loopback(23);
    address.source_port = 0xc0de;
    address.traffic_class = 0xc2;
    auto send = [&](uint32_t number) {
      address.dest_qpn = number;
      Packet* packet = make_cnp(pool, address);
      REQUIRE(materialize(pool, packet));
      sender.send(packet, 0);
    };
    for (uint32_t i = 0; i < kPackets; ++i) send(i);
    CHECK(told == std::vector<bool>{true});
    CHECK(outstanding.packets == kPackets);
    while (outstanding.packets > 0) (*ring)->poll();
    CHECK(told == std::vector<bool>{true, false});
    CHECK(counters.tx_packets.get() == kPackets);
    for (uint32_t i = 0; i < kPackets; ++i) {
      uint8_t bytes[64];
      int tos = -1;
      REQUIRE(receive(receiver->get(), bytes, tos) == 32);
      REQUIRE(tos == 0xc2);
      REQUIRE((bytes[5] << 16 | bytes[6] << 8 | bytes[7]) == static_cast<int>(i));
    }

    // What ICMP answers to a packet costs the next one nothing.
    address.to = loopback(24);
    for (uint32_t i = 0; i < 4; ++i) {
      send(i);
      while (outstanding.packets > 0) (*ring)->poll();
    }
    CHECK(counters.tx_packets.get() == kPackets + 4);
    CHECK(counters.tx_errors.get() == 0);
    CHECK(counters.icmp_refused.get() >= 3);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] ==
          "what was sent to " + ip_text(loopback(24)) + " came back: Connection refused");
    warnings.clear();

    // Each reason is told once for a while, and counted each time.
    address.from = mapped_ipv4({192, 0, 2, 1});
    for (uint32_t i = 0; i < 5; ++i) send(i);
    CHECK(counters.tx_no_socket.get() == 5);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] ==
          "cannot send from 192.0.2.1, UDP port 49374: Cannot assign requested address");
    // No network leads from this machine's loopback to others.
    address.from = loopback(22);
    address.to = mapped_ipv4({240, 0, 0, 1});
    send(0);
    while (outstanding.packets > 0) (*ring)->poll();
    CHECK(counters.tx_packets.get() == kPackets + 4);
    CHECK(warnings.size() == 2);
  }
  CHECK(outstanding.packets == 0);
}
