// Packet spraying: the packets that vary their UDP source port, the range of ports, the dwell.
#include <map>
#include <set>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Source ports of the packets on one link, in order, with their opcodes.
struct Ports {
  struct One {
    TimeNs at;
    uint16_t port;
    wire::Opcode opcode;
  };
  std::vector<One> seen;
  Watch watch;
  Ports(Pair& pair, const char* link)
      : watch(pair, link, [this, &pair](const wire::Parsed& parsed, Packet&) {
          seen.push_back(
              {pair.world.scheduler.now(), parsed.headers.udp.src_port, parsed.headers.bth.opcode});
          return false;
        }) {}
  std::set<uint16_t> distinct() const {
    std::set<uint16_t> ports;
    for (const One& one : seen) ports.insert(one.port);
    return ports;
  }
};

constexpr uint32_t kPackets = 200;
constexpr uint32_t kLength = kPackets * 256;

QpAttributes wide() {
  QpAttributes attributes = quick_attributes();
  attributes.window = 512;
  attributes.timeout = 10;
  return attributes;
}

}  // namespace

TEST_CASE("spraying: requests use the set number of ports in turn, packet by packet") {
  for (uint32_t range : {1u, 2u, 16u, 150u}) {
    INFO(range);
    Pair pair(wide());
    set_ops(pair.link.near_device, true, range);
    Ports ports(pair, "sw_0-mb_1");
    REQUIRE(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    REQUIRE(ports.seen.size() == kPackets);
    CHECK(ports.distinct().size() == range);
    for (size_t i = range; i < ports.seen.size(); ++i) {
      REQUIRE(ports.seen[i].port == ports.seen[i - range].port);
    }
    uint16_t own =
        pair.link.near->headers_to(pair.link.near->attributes().path, pair.link.far->number())
            .udp.src_port;
    for (uint16_t port : ports.distinct()) {
      CHECK(port >= 0xc000);
      CHECK(((port - own) & 0x3fff) < range);
    }
  }
}

TEST_CASE("spraying: while it is off, and with one port, each packet has the flow's own port") {
  for (bool enable : {false, true}) {
    Pair pair(wide());
    set_ops(pair.link.near_device, enable, enable ? 1 : 16);
    Ports ports(pair, "sw_0-mb_1");
    REQUIRE(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(ports.distinct().size() == 1);
  }
}

TEST_CASE("spraying: the full range is 16384 ports from 0xC000 on, each used once in turn") {
  Pair pair(wide());
  set_ops(pair.link.near_device, true, 16384);
  std::map<uint16_t, int> times;
  Watch watch(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    ++times[parsed.headers.udp.src_port];
    return false;
  });
  constexpr uint64_t kMessages = 64;  // of 256 packets
  for (uint64_t i = 0; i < kMessages; ++i) pair.link.post(pair.link.write(i, 0, 256 * 256));
  pair.run();
  REQUIRE(times.size() == 16384);
  CHECK(times.begin()->first == 0xc000);
  for (const auto& [port, count] : times) REQUIRE(count == 1);
}

TEST_CASE(
    "spraying: READ responses are sprayed; acknowledgements, NAKs and atomic answers are not") {
  Pair pair(wide());
  set_ops(pair.link.far_device, true, 8);
  Ports forth(pair, "sw_0-mb_1"), back(pair, "sw_0-mb_0");
  pair.link.post(pair.link.read(1, 0, 40 * 256));
  for (uint64_t i = 0; i < 9; ++i) {
    pair.link.post(pair.link.fetch_add(2 + i, 0, 1, 60000));
    pair.link.post(pair.link.write(20 + i, 0, 256));
    pair.link.post(pair.link.send(40 + i, 0, 10));  // RNR NAKs
    pair.world.scheduler.run_until(pair.world.scheduler.now() + 30 * kMicrosecond);
    pair.link.post(pair.link.receive(i, 20000, 100));
    pair.run();
  }
  CHECK(forth.distinct().size() == 1);  // the near end does not spray
  std::map<wire::Opcode, std::set<uint16_t>> by_opcode;
  for (const auto& one : back.seen) by_opcode[one.opcode].insert(one.port);
  CHECK(by_opcode[wire::Opcode::kRcReadResponseMiddle].size() == 8);
  CHECK(by_opcode[wire::Opcode::kRcAck].size() == 1);
  CHECK(by_opcode[wire::Opcode::kRcAtomicAck] == by_opcode[wire::Opcode::kRcAck]);
  CHECK(pair.far().out_of_buffer.get() > 0);
}

TEST_CASE("spraying: a level keeps a flow on a port for its dwell time") {
  constexpr TimeNs kDwell[] = {0, 10, 20, 50, 100, 200};
  for (uint64_t level = 1; level <= 5; ++level) {
    INFO(level);
    Pair pair(wide());
    LinkParameters slow = pair.world.link("mb_0-sw_0").parameters();
    slow.rate_bps = 1'000'000'000;  // 2.8 us a packet
    set(pair.world.link("mb_0-sw_0"), slow);
    set_ops(pair.link.near_device, true, 4, level);
    Ports ports(pair, "sw_0-mb_1");
    for (uint64_t i = 0; i < 5; ++i) pair.link.post(pair.link.write(i, 0, kLength));
    pair.run();
    CHECK(ports.distinct().size() == 4);
    // Between two moves lies the dwell, and at most the packet that was being sent.
    TimeNs moved = kNever;
    for (size_t i = 1; i < ports.seen.size(); ++i) {
      if (ports.seen[i].port == ports.seen[i - 1].port) continue;
      TimeNs stayed = ports.seen[i].at - moved, dwell = kDwell[level] * kMicrosecond;
      if (moved != kNever) CHECK((stayed >= dwell && stayed < dwell + 3 * kMicrosecond));
      moved = ports.seen[i].at;
    }
    CHECK(moved != kNever);
  }
}

TEST_CASE("spraying: settings may change during a flow without loss, and ICRCs stay right") {
  Pair pair(wide());
  // Seals the packets on the way, so that the receiver checks their ICRC.
  Watch sealed(pair, "sw_0-mb_1",
               [&](const wire::Parsed&, Packet& packet) { return !materialize(packet); });
  Rng rng(1, "changes");
  for (uint64_t i = 0; i < 100; ++i) {
    pair.link.post(pair.link.write(i, 0, 5000));
    set_ops(pair.link.near_device, rng.chance(0.7), 1 + rng.below(16384), rng.below(6));
    pair.world.scheduler.run_until(pair.world.scheduler.now() + 2 * kMicrosecond);
  }
  pair.run();
  CHECK(pair.sent().size() == 100);
  CHECK(pair.far().rx_icrc_encapsulated.get() == 0);
  CHECK(pair.near().packet_seq_err.get() == 0);
  CHECK(pair.far().port_rcv_errors.get() == 0);
  CHECK(pair.same(0, 0, 5000));
}

TEST_CASE("spraying: each queue pair goes through its range independently") {
  World world;
  set_ops(world.device("mb_0"), true, 4);
  Connection a(world, kPairArea, wide()), b(world, kPairArea, wide());
  std::map<uint32_t, std::vector<uint16_t>> ports;
  Meddler meddler(world, world.link("sw_0-mb_1"), 1, {});
  meddler.script = [&](const wire::Parsed& parsed, Packet&) {
    ports[parsed.headers.bth.dest_qpn].push_back(parsed.headers.udp.src_port);
    return false;
  };
  for (Connection* one : {&a, &b}) one->post(one->write(1, 0, 256 * 40));
  REQUIRE(world.run_idle());
  REQUIRE(ports.size() == 2);
  for (const auto& [qpn, seen] : ports) {
    REQUIRE(seen.size() == 40);
    CHECK(std::set<uint16_t>(seen.begin(), seen.end()).size() == 4);
    for (size_t i = 4; i < seen.size(); ++i) CHECK(seen[i] == seen[i - 4]);
  }
}

TEST_CASE("spraying: a driver that comes back has the default settings") {
  World world;
  Device& device = world.device("mb_0");
  set_ops(device, true, 100, 3);
  set_sr(device, true, 9);
  device.leave();
  device.arrive();
  CHECK_FALSE(device.spraying().on());
  CHECK_FALSE(device.selective().enabled());
  CHECK(device.selective().reorder_window() == 64);
}

// A UC message ends with the first packet that does not follow the one before.
TEST_CASE("spraying: UC keeps its own port, and loses nothing to it") {
  Pair pair(wide(), QpType::kUc);
  for (QpHost* host : {&pair.link.near_device, &pair.link.far_device}) set_ops(*host, true);
  Ports ports(pair, "sw_0-mb_1");
  REQUIRE(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(ports.seen.size() == kPackets);
  CHECK(ports.distinct().size() == 1);
  CHECK(pair.same(0, 0, kLength));
}
