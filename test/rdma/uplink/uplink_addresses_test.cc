// Changes of the machine's addresses and interfaces, and their effect on ports.
#include "rdma/uplink/uplink_addresses.h"
#include "rdma/uplink/interface.h"

#include "test/each_loop.h"
#include "test/rdma/uplink/own_network.h"
#include "test/rdma/uplink/uplinked.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// The descriptor of this process that is bound to UDP port 4791 of an address.
int receiver_of(const Ip& ip) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    UdpAddress own;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0 &&
        from_sockaddr(reinterpret_cast<sockaddr&>(name), own) && own.ip == ip &&
        own.port == wire::kRocePort) {
      return fd;
    }
  }
  return -1;
}

bool link_up(Host& host, const char* port = "mb_0") {
  bool up = false;
  host.on_core([&] { up = host.fabric->port(port)->link_up(); });
  return up;
}

void write_across(Host& from, Host& to) {
  from.post(from.request(SendOp::kWrite, to, 0, 0, 20'000));
  from.expect_success(1);
}

}  // namespace

TEST_CASE("uplink addresses: a port is down while its interface is down, and traffic waits") {
  ON_EACH_LOOP();
  OwnNetwork network;
  if (!network.ready()) skip("only root makes a network namespace");
  Wire wire;
  Host& near = wire.near;
  near.run_control();
  write_across(near, wire.far);
  std::string ip = loopback_address(2);
  wire.far.run_control();
  network.set_up(false);
  CHECK(near.says("uplink: " + ip + ": lo is down; mb_0 is down"));
  CHECK(!near.device().port().carrier());
  CHECK(!link_up(near));
  CHECK(link_up(near, "mb_1"));
  CHECK(near.counters().link_downed.get() == 1);
  CHECK(wire.far.comes([&] { return !link_up(wire.far); }));
  near.post(near.request(SendOp::kWrite, wire.far, 0, 0, 20'000));
  CHECK(near.comes([&] { return near.counters().port_xmit_discards.get() >= 5; }));
  network.set_up(true);
  CHECK(near.says("uplink: " + ip + ": can be used again; mb_0 is up"));
  near.expect_success(1);
  CHECK(link_up(near));
  CHECK(near.counters().link_downed.get() == 1);
  CHECK(wire.far.comes([&] { return link_up(wire.far); }));
  CHECK(wire.far.counters().link_downed.get() == 1);
}

TEST_CASE("uplink addresses: a port's MTU follows its interface, up to its own limit") {
  ON_EACH_LOOP();
  OwnNetwork network({}, 1500);
  if (!network.ready()) skip("only root makes a network namespace");
  Wire wire;
  Host& near = wire.near;
  CHECK(near.device().port().mtu() == 1024);
  near.run_control();
  CHECK(near.says("uplink: lo has MTU 1500: mb_0 has 1024"));
  network.set_mtu(9000);
  CHECK(near.says("uplink: lo has MTU 9000: mb_0 has 4096"));
  CHECK(near.device().port().mtu() == 4096);
  write_across(near, wire.far);
  // A path MTU that is set stays; a new one may not exceed the port's.
  network.set_mtu(1200);
  CHECK(near.says("uplink: lo has MTU 1200: mb_0 has 1024"));
  uint32_t kept = 0;
  Result<void> reset, refused;
  near.on_core([&] {
    QpAttributes longer = near.qp->attributes();
    kept = std::exchange(longer.path_mtu, 2048);
    reset = near.qp->modify(QpState::kReset, longer, 0);
    refused = near.qp->bring_up(longer);
  });
  CHECK(kept == 1024);
  CHECK(reset);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == "path MTU 2048 on a port with MTU 1024");
  // An interface too small for RoCE leaves the port with the minimum.
  network.set_mtu(200);
  CHECK(near.says("uplink: lo has MTU 200: mb_0 has 256"));
}

TEST_CASE(
    "uplink addresses: a port has the lesser MTU, and carrier if its host's interface has, too") {
  Wire wire;
  Port& port = wire.near.device().port();
  wire.near.on_core([&] {
    port.set_host_mtu(1024);
    port.set_mtu(4096);
    CHECK(port.mtu() == 1024);
    port.set_mtu(512);
    CHECK(port.mtu() == 512);
    port.set_mtu(4096);
    port.set_host_mtu(2048);
    CHECK(port.mtu() == 2048);
    port.set_carrier(false);
    port.set_host_carrier(false);
    port.set_host_carrier(true);
    CHECK(!port.carrier());
    CHECK(!port.link_up());
    port.set_host_carrier(false);
    port.set_carrier(true);
    CHECK(!port.carrier());
    port.set_host_carrier(true);
    CHECK(port.carrier());
    CHECK(port.link_up());
  });
}

TEST_CASE("uplink addresses: an address under duplicate detection is waited for") {
  ON_EACH_LOOP();
  OwnNetwork network({"fd00:77::2"});
  if (!network.ready()) skip("only root makes a network namespace");
  // The kernel asks the neighbours for a while, on an interface that may have some.
  int made = std::system(
      "ip link add wire mtu 4200 type veth peer name eriw 2>/dev/null && cd /proc/sys/net/ipv6 && "
      "echo 300 >neigh/wire/retrans_time_ms && echo 0 >conf/wire/router_solicitation_delay && "
      "ip link set eriw up && ip link set wire up && ip addr add fd00:77::1/64 dev wire");
  if (made != 0) skip("no veth here");
  Host host("fd00:77::1");
  host.run_control();
  CHECK(host.uplink().addresses().empty());
  CHECK(
      host.says("uplink: fd00:77::1: wire has not finished duplicate address "
                "detection; mb_0 is down"));
  CHECK(!link_up(host));
  CHECK(host.says("uplink: fd00:77::1: can be used again; mb_0 is up"));
  CHECK(link_up(host));
  Host far("fd00:77::2");
  auto ip = [](Host& one) { return gids_of(one.device().port().spec())[2]; };
  host.connect_to(ip(far), far.qp->number(), {});
  far.connect_to(ip(host), host.qp->number(), {});
  write_across(far, host);
}

TEST_CASE("uplink addresses: a socket that fails to receive takes the port down and is replaced") {
  ON_EACH_LOOP();
  Wire wire;
  Host& near = wire.near;
  near.run_control();
  std::string ip = loopback_address(2);
  int fd = receiver_of(near.gid()), ends[2];
  REQUIRE(fd >= 0);
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  Fd nothing(ends[0]), other_end(ends[1]);
  // The waiting request is replaced by one for the other mode, and then the descriptor is another
  // file.
  near.on_core([&] {
    REQUIRE(::dup2(nothing.get(), fd) == fd);
    near.uplink().apply(std::vector<KnobValue>{uint64_t{1}});
  });
  CHECK(near.comes([&] { return near.warnings().size() >= 2; }));
  CHECK(near.says("uplink: " + ip + ": can be used again; mb_0 is up"));
  std::vector<std::string> said = near.warnings();
  CHECK(said[said.size() - 2] ==
        "uplink: " + ip +
            " cannot receive any more: Socket operation on non-socket; mb_0 is "
            "down");
  CHECK(near.counters().link_downed.get() == 1);
  write_across(wire.far, near);
}

TEST_CASE("uplink: an interface's MTU leaves room for the longest headers, as in Linux") {
  // IPv6 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28 and ICRC 4 octets.
  CHECK(roce_mtu(4096 + 96) == 4096);
  CHECK(roce_mtu(4096 + 95) == 2048);
  CHECK(roce_mtu(1500) == 1024);
  CHECK(roce_mtu(1024 + 95) == 512);
  CHECK(roce_mtu(256 + 96) == 256);
  CHECK(roce_mtu(256 + 95) == 0);
}
