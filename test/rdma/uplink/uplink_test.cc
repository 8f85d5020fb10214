// Packets that leave through the kernel's network and come back from it.
#include <sys/socket.h>

#include "rdma/cc/cnp.h"
#include "rdma/fabric/injector.h"
#include "test/each_loop.h"
#include "test/rdma/congested.h"
#include "test/rdma/uplink/uplinked.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

bool same(std::span<uint8_t> a, std::span<uint8_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

TEST_CASE("uplink: unknown destinations leave by the nearest uplink, and the rest stays inside") {
  Topology topology = default_topology();
  topology.switches = {{"leaf"}, {"spine_0"}, {"spine_1"}, {"border"}};
  topology.uplinks = {{"up"}};
  topology.links.clear();
  for (auto [a, b] :
       {std::pair{"mb_0", "leaf"}, std::pair{"mb_1", "leaf"}, std::pair{"leaf", "spine_0"},
        std::pair{"leaf", "spine_1"}, std::pair{"spine_0", "border"},
        std::pair{"spine_1", "border"}, std::pair{"border", "up"}}) {
    topology.links.push_back({a, b});
  }
  World world(1, topology);
  Switch& leaf = *world.fabric.find_switch("leaf");
  CnpAddress address;
  address.from = mapped_ipv4({10, 77, 0, 1});
  address.to = mapped_ipv4({10, 9, 0, 2});
  for (uint16_t port = 0; port < 64; ++port) {
    address.source_port = static_cast<uint16_t>(0xc000 + port);
    REQUIRE(leaf.send(make_cnp(world.fabric.pool(), address), world.scheduler.now()));
  }
  address.to = mapped_ipv4({10, 77, 0, 2});
  REQUIRE(leaf.send(make_cnp(world.fabric.pool(), address), world.scheduler.now()));
  REQUIRE(world.run_idle());
  // Not open: there is no socket.
  CHECK(world.fabric.uplink("up")->counters().tx_no_socket.get() == 64);
  CHECK(world.counters("mb_1").port_rcv_packets.get() == 1);
  CHECK(world.fabric.counters().unroutable.get() == 0);
  for (const char* link : {"leaf-spine_0", "leaf-spine_1"}) {
    CHECK(world.link(link).counters().packets.get() > 10);
  }
}

TEST_CASE("uplink: packets leave without options, and events tell octets alone") {
  ON_EACH_LOOP();
  Wire wire;
  WindowTaker owner;
  constexpr uint32_t kLength = 100'000;
  wire.near.on_core([&] {
    if (!owner.take(wire.near.device())) std::abort();
    owner.line(wire.near.qp->number()).wants = ROCEFS_WANTS_EVENTS | ROCEFS_WANTS_HOPS;
  });
  fill(wire.near.bytes(), 7);
  wire.near.post(wire.near.request(SendOp::kWrite, wire.far, 0, 0, kLength));
  wire.near.expect_success(1);
  CHECK(same(wire.near.bytes().subspan(0, kLength), wire.far.bytes().subspan(0, kLength)));
  CHECK(wire.far.counters().rx_icrc_encapsulated.get() == 0);
  wire.near.on_core([&] {
    auto& page = *wire.near.device().registers().signals()->at<rocefs_signals_page>(0);
    CHECK(page.events_written > 0);
    uint64_t octets = 0;
    for (uint64_t n = 0; n < page.events_written; ++n) {
      octets += page.events[n].bytes;
      CHECK(page.events[n].rtt_ns == 0);
      CHECK(page.events[n].hops == 0);
    }
    CHECK(octets == kLength);
    wire.near.device().registers().give_back(owner);
  });
}

TEST_CASE("uplink: WRITE, READ, SEND and atomics cross the kernel's network both ways") {
  ON_EACH_LOOP();
  Wire wire;
  constexpr uint32_t kHalf = Host::kArea / 2, kLength = 300'001;
  for (auto [from, to] : {std::pair{&wire.near, &wire.far}, std::pair{&wire.far, &wire.near}}) {
    fill(from->bytes(), 7);
    fill(to->bytes(), 8);
    from->post(from->request(SendOp::kWrite, *to, 0, kHalf, kLength));
    from->expect_success(1);
    REQUIRE(same(from->bytes().subspan(0, kLength), to->bytes().subspan(kHalf, kLength)));

    fill(to->bytes(), 9);
    from->post(from->request(SendOp::kRead, *to, kHalf, 1, kLength));
    from->expect_success(1);
    REQUIRE(same(from->bytes().subspan(kHalf, kLength), to->bytes().subspan(1, kLength)));

    to->post(to->receive(0, kLength));
    from->post(from->request(SendOp::kSend, *to, kHalf + 5, 0, kLength));
    from->expect_success(1);
    to->expect_success(1);
    REQUIRE(same(from->bytes().subspan(kHalf + 5, kLength), to->bytes().subspan(0, kLength)));

    uint64_t before = 40, after = 0, told = 0;
    std::memcpy(to->bytes().data() + 64, &before, sizeof before);
    SendRequest add = from->request(SendOp::kFetchAdd, *to, 128, 64, 8);
    add.swap_add = 2;
    from->post(add);
    from->expect_success(1);
    std::memcpy(&after, to->bytes().data() + 64, sizeof after);
    std::memcpy(&told, from->bytes().data() + 128, sizeof told);
    REQUIRE(after == 42);
    REQUIRE(told == 40);
  }
  for (Host* host : {&wire.near, &wire.far}) {
    REQUIRE(host->uplink().counters().tx_packets.get() > 200);
    REQUIRE(host->uplink().counters().rx_packets.get() > 200);
    REQUIRE(host->uplink().counters().rx_ids_solved.get() == 0);
    REQUIRE(host->counters().rx_icrc_encapsulated.get() == 0);
    REQUIRE(host->warnings().back() ==
            "uplink: not this machine's, so inside only: 10.77.0.2 (mb_1)");
  }
}

TEST_CASE("uplink: with gso at one or at both ends the same data arrives") {
  ON_EACH_LOOP();
  Wire wire;
  constexpr uint32_t kHalf = Host::kArea / 2, kLength = 400'001;
  auto gso = [](Host& host, bool wanted) {
    host.on_core([&] { host.uplink().apply(std::vector<KnobValue>{uint64_t{wanted}}); });
  };
  uint8_t seed = 20;
  auto cross = [&] {
    fill(wire.near.bytes(), ++seed);
    fill(wire.far.bytes(), ++seed);
    wire.near.post(wire.near.request(SendOp::kWrite, wire.far, 0, 0, kLength));
    wire.near.post(wire.near.request(SendOp::kRead, wire.far, kHalf, kHalf, kLength));
    wire.near.expect_success(2);
    REQUIRE(same(wire.near.bytes().subspan(0, kLength), wire.far.bytes().subspan(0, kLength)));
    REQUIRE(
        same(wire.near.bytes().subspan(kHalf, kLength), wire.far.bytes().subspan(kHalf, kLength)));
  };
  UplinkCounters& near = wire.near.uplink().counters();
  UplinkCounters& far = wire.far.uplink().counters();
  gso(wire.near, true);
  cross();
  CHECK(near.tx_batches.get() > 0);
  CHECK(near.tx_batched.get() >= 2 * near.tx_batches.get());
  // The kernel has segmented them for the far end, which solves their IDs.
  CHECK(far.rx_batches.get() == 0);
  CHECK(far.rx_ids_solved.get() >= near.tx_batched.get() - near.tx_batches.get());
  CHECK(far.tx_batches.get() == 0);
  gso(wire.far, true);
  uint64_t solved = far.rx_ids_solved.get();
  cross();
  CHECK(far.tx_batches.get() > 0);
  CHECK(far.rx_batches.get() > 0);
  CHECK(far.rx_batched.get() >= 2 * far.rx_batches.get());
  CHECK(far.rx_ids_solved.get() == solved);
  CHECK(near.rx_ids_solved.get() == 0);
  // An ICRC that the uplink has found right is checked again if a bit has flipped since.
  Result<InjectSpec> spec = parse_inject("f corrupt uplink-sw_0 count=3 what=icrc");
  REQUIRE(spec);
  auto fault = std::make_shared<InjectedFault>(*spec, 1, nullptr);
  std::optional<Injector> injector;
  wire.far.on_core([&] {
    Fabric& fabric = *wire.far.fabric;
    injector.emplace(*fabric.link(spec->link));
    injector->arm(fault);
  });
  cross();
  wire.far.on_core([&] { injector.reset(); });
  CHECK(fault->fired.get() == 3);
  CHECK(wire.far.counters().rx_icrc_encapsulated.get() == 3);
  gso(wire.near, false);
  gso(wire.far, false);
  uint64_t batches = near.tx_batches.get();
  cross();
  CHECK(near.tx_batches.get() == batches);
  for (Host* host : {&wire.near, &wire.far}) {
    CHECK(host->uplink().counters().rx_damaged.get() == 0);
    CHECK(host->uplink().counters().rx_malformed.get() == 0);
    CHECK(host->uplink().counters().rx_too_long.get() == 0);
  }
}

TEST_CASE("uplink: the cable is paused while the kernel has enough to send") {
  ON_EACH_LOOP();
  Host host(loopback_address(7));
  constexpr unsigned kPackets = 2000;
  uint64_t paused = 0;
  host.on_core([&] {
    CnpAddress address;
    address.from = host.gid();
    address.to = mapped_ipv4({127, 0, 0, 1});
    address.source_port = 0xc001;
    for (unsigned i = 0; i < kPackets; ++i) {
      PacketPtr packet = make_cnp(host.fabric->pool(), address);
      host.uplink().receive(packet.release(), host.engine->scheduler().now());
    }
    paused = host.uplink().counters().tx_pauses.get();
  });
  CHECK(paused == 1);
  TimeNs end = monotonic_ns() + 10 * kSecond;
  auto settled = [&] {
    bool free = false;
    host.on_core([&] {
      free = host.uplink().counters().tx_packets.get() == kPackets &&
             host.fabric->link("sw_0-uplink")->paused() == 0 &&
             host.engine->outstanding().packets == 0;
    });
    return free;
  };
  while (!settled() && monotonic_ns() < end) std::this_thread::yield();
  CHECK(host.uplink().counters().tx_packets.get() == kPackets);
  for (size_t priority = 0; priority < kPriorities; ++priority) {
    PauseState& state = host.fabric->link("sw_0-uplink")->pause_state(priority);
    CHECK(state.counters.pause_received.get() == 1);
    CHECK(state.paused.get() == 0);
  }
  CHECK(settled());
}

TEST_CASE("uplink: a payload whose region has gone is not sent, and is counted") {
  ON_EACH_LOOP();
  Wire wire;
  Host& near = wire.near;
  near.on_core([&] {
    Scheduler& scheduler = near.engine->scheduler();
    REQUIRE(near.qp->post(near.request(SendOp::kWrite, wire.far, 0, 0, 100)));
    while (near.counters().port_xmit_packets.get() == 0) scheduler.run_one(scheduler.now());
    REQUIRE(near.device().memory().remove(near.key));
  });
  CHECK(near.comes([&] { return near.fabric->counters().stale_payloads.get() == 1; }));
  CHECK(near.uplink().counters().tx_packets.get() == 0);
}

TEST_CASE("uplink: a start that fails gives the reason") {
  ON_EACH_LOOP();
  struct Row {
    ClockMode mode;
    std::string address;
    int code;
    std::string why;
  };
  std::string taken = loopback_address(5);
  Host host(taken);
  const Row rows[] = {
      {ClockMode::kVirtual, loopback_address(6), EOPNOTSUPP,
       "uplink: the kernel's network needs the real clock"},
      {ClockMode::kReal, taken, EADDRINUSE, "uplink: UDP port 4791 of " + taken + " is in use"},
      {ClockMode::kReal, "192.0.2.1", EADDRNOTAVAIL,
       "uplink: no address behind it is this machine's: 192.0.2.1 (mb_0), 10.77.0.2 "
       "(mb_1)"}};
  for (const Row& row : rows) {
    PollLoop loop;
    Engine::Options options;
    options.mode = row.mode;
    auto engine = Engine::create(options, loop);
    REQUIRE(engine);
    Fabric fabric(*uplink_topology(row.address), 1, (*engine)->scheduler(),
                  (*engine)->outstanding());
    Result<void> opened = fabric.uplink("uplink")->open(**engine, loop, [](const std::string&) {});
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == row.code);
    CHECK(opened.error().reason == row.why);
  }
}

TEST_CASE("uplink: packets from strangers are counted, and do not disturb a connection") {
  ON_EACH_LOOP();
  Wire wire;
  auto stranger = open_udp({mapped_ipv4({127, 0, 0, 1}), 0}, UdpUse::kSend);
  REQUIRE(stranger);
  sockaddr_storage name{};
  socklen_t length = to_sockaddr({wire.far.gid(), wire::kRocePort}, name);
  auto throw_in = [&](size_t size, uint8_t byte) {
    std::vector<uint8_t> bytes(size, byte);
    REQUIRE(::sendto(stranger->get(), bytes.data(), size, 0, reinterpret_cast<sockaddr*>(&name),
                     length) == static_cast<ssize_t>(size));
  };
  for (size_t size : {0, 1, 15, 100, 4147}) throw_in(size, 0xff);  // no opcode
  for (size_t size : {4148, 9000, 60000}) throw_in(size, 0);
  throw_in(16, 0);  // an RC SEND First, its ICRC wrong
  UplinkCounters& uplink = wire.far.uplink().counters();
  TimeNs end = monotonic_ns() + 10 * kSecond;
  while (uplink.rx_damaged.get() == 0 && monotonic_ns() < end) std::this_thread::yield();
  CHECK(uplink.rx_malformed.get() == 5);
  CHECK(uplink.rx_too_long.get() == 3);
  CHECK(uplink.rx_damaged.get() == 1);
  fill(wire.near.bytes(), 1);
  wire.near.post(wire.near.request(SendOp::kWrite, wire.far, 0, 0, 100'000));
  wire.near.expect_success(1);
  CHECK(same(wire.near.bytes().subspan(0, 100'000), wire.far.bytes().subspan(0, 100'000)));
  CHECK(wire.far.counters().rx_icrc_encapsulated.get() == 1);
}

TEST_CASE("uplink: a successor continues without its port, and binds it when it is free") {
  ON_EACH_LOOP();
  SavedAddresses saved{};
  { Host earlier(loopback_address(43), Uplink::At::kStart, &saved); }
  Host peer(loopback_address(42));
  UdpAddress address{peer.gid(), wire::kRocePort};
  address.ip[15] = 43;
  REQUIRE(saved.count == 1);  // 10.77.0.2 is nobody's
  CHECK(saved.ours[0] == address.ip);
  // The kernel ends an io_uring, and what its requests hold, some time after its last descriptor.
  Result<Fd> other = Error{EADDRINUSE, ""};
  REQUIRE(peer.comes([&] {
    other = open_udp(address, UdpUse::kReceive);
    return static_cast<bool>(other);
  }));
  Host host(loopback_address(43), Uplink::At::kTakeover, &saved);
  CHECK(host.uplink().addresses().empty());
  CHECK(host.uplink().counters().rx_unbound.get() == 1);
  host.run_control();
  std::string ip = loopback_address(43);
  CHECK(host.says("uplink: " + ip + ": UDP port 4791 of " + ip + " is in use; mb_0 is down"));
  CHECK(!host.device().port().carrier());
  CHECK(host.fabric->port("mb_1")->carrier());
  CHECK(host.comes([&] { return host.uplink().counters().rx_unbound.get() >= 2; }));
  CHECK(host.uplink().addresses().empty());
  other->reset();
  CHECK(host.says("uplink: " + ip + ": can be used again; mb_0 is up"));
  CHECK(host.uplink().addresses() == std::vector<Ip>{address.ip});
  CHECK(host.warnings().size() == 2);
  host.connect(peer);
  peer.connect(host);
  peer.post(peer.request(SendOp::kWrite, host, 0, 0, 5000));
  peer.expect_success(1);
}
