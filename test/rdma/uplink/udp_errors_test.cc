// Failures of the kernel's sends, and ICMP errors for sent datagrams: each has its counter.
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

#include "core/base/fd.h"
#include "test/each_loop.h"
#include "test/rdma/uplink/own_network.h"
#include "test/rdma/uplink/sending.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

bool done(const char* command) {
  return std::system(command) == 0;
}

// Sends an ICMP error, as a router would.
void tell(const Ip& from, const Ip& to, uint16_t source_port, uint8_t code, uint16_t mtu) {
  struct {
    icmphdr icmp{};
    uint8_t ip[wire::kIpv4Len] = {0x45};
    uint8_t udp[wire::kUdpLen] = {};
  } message;
  message.icmp.type = ICMP_DEST_UNREACH;
  message.icmp.code = code;
  message.icmp.un.frag.mtu = htons(mtu);
  wire::store16(message.ip + 2, sizeof message.ip + sizeof message.udp);
  message.ip[9] = IPPROTO_UDP;
  std::copy_n(from.begin() + 12, 4, message.ip + 12);
  std::copy_n(to.begin() + 12, 4, message.ip + 16);
  wire::store16(message.udp, source_port);
  wire::store16(message.udp + 2, wire::kRocePort);
  uint8_t bytes[sizeof message];
  std::memcpy(bytes, &message, sizeof bytes);
  uint32_t sum = 0;
  for (size_t i = 0; i < sizeof bytes; i += 2) sum += wire::load16(bytes + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  wire::store16(bytes + 2, static_cast<uint16_t>(~sum));
  Fd raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  REQUIRE(raw);
  sockaddr_storage name{};
  socklen_t length = to_sockaddr({from, 0}, name);
  REQUIRE(::sendto(raw.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&name), length) ==
          static_cast<ssize_t>(sizeof bytes));
}

}  // namespace

TEST_CASE("udp sender: each reason why the kernel does not send has its counter") {
  ON_EACH_LOOP();
  OwnNetwork network;
  if (!network.ready()) skip("only root makes a network namespace");
  REQUIRE(
      done("ip addr add 10.9.0.1/24 dev lo && ip route add unreachable 10.9.1.0/24 && "
           "ip route add prohibit 10.9.2.0/24 && ip route add blackhole 10.9.3.0/24 && "
           "tc qdisc replace dev lo root pfifo limit 0"));
  Sending all;
  UplinkCounters& counters = all.counters;
  struct Row {
    std::array<uint8_t, 4> to;
    Counter& counter;
    const char* why;
  };
  const Row rows[] = {
      {{10, 8, 0, 1}, counters.tx_unreachable, "Network is unreachable"},
      {{10, 9, 1, 1}, counters.tx_unreachable, "No route to host"},
      {{10, 9, 2, 1}, counters.tx_refused, "Permission denied"},
      {{10, 9, 3, 1}, counters.tx_errors, "Invalid argument"},
      {{127, 0, 0, 3}, counters.tx_no_buffers, "No buffer space available"},
  };
  TimeNs now = 0;
  for (const Row& row : rows) {
    INFO(row.why);
    now += 20 * kSecond;  // so that it is reported again
    all.scheduler.pass(now);
    uint64_t before = row.counter.get();
    CnpAddress address = address_of(mapped_ipv4({10, 9, 0, 1}), mapped_ipv4(row.to), 0xc001);
    all.sender->send(all.packet(address, 100), now);
    while (all.outstanding.packets > 0) all.run();
    CHECK(row.counter.get() == before + 1);
    REQUIRE_FALSE(all.warnings.empty());
    CHECK(all.warnings.back().ends_with(row.why));
  }
  CHECK(counters.tx_packets.get() == 0);
}

TEST_CASE("udp sender: ICMP errors for earlier packets are counted, and lose no packet") {
  ON_EACH_LOOP();
  OwnNetwork network;
  if (!network.ready()) skip("only root makes a network namespace");
  Sending all;
  auto receiver = open_udp({mapped_ipv4({127, 0, 0, 3}), wire::kRocePort}, UdpUse::kReceive);
  REQUIRE(receiver);
  Ip from = mapped_ipv4({127, 0, 0, 2}), to = mapped_ipv4({127, 0, 0, 3});
  auto send = [&] {
    all.sender->send(all.packet(address_of(from, to, 0xc001), 100), 0);
    while (all.outstanding.packets > 0) all.run();
  };
  send();
  tell(from, to, 0xc001, ICMP_HOST_UNREACH, 0);
  send();
  CHECK(all.counters.icmp_unreachable.get() == 1);
  tell(from, to, 0xc001, ICMP_FRAG_NEEDED, 1400);
  send();
  CHECK(all.counters.icmp_too_long.get() == 1);
  CHECK(all.counters.icmp_refused.get() == 0);
  CHECK(all.counters.tx_packets.get() == 3);
  std::array<uint8_t, 200> bytes;
  for (int i = 0; i < 3; ++i)
    CHECK(::recv(receiver->get(), bytes.data(), bytes.size(), MSG_DONTWAIT) == 132);
  REQUIRE(all.warnings.size() == 2);
  CHECK(all.warnings[0] == "a packet to 127.0.0.3 came back: No route to host");
  CHECK(all.warnings[1] == "a packet to 127.0.0.3 came back: longer than the path's MTU of 1400");
}
