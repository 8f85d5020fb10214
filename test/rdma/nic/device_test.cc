// Devices with two ports, ports whose link goes down and up, and devices that leave and come back.
#include "rdma/nic/device.h"

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// mlx5_0 and mlx5_1, two ports each: the first ports on one switch, the second on another.
Topology two_planes() {
  Topology topology;
  auto octets = [](uint8_t plane, uint8_t n) -> PortSpec {
    return {fmt::format("eth{}{}", n, plane), {2, 0, 0, 0, plane, n}, {10, 77, plane, n}, {}};
  };
  topology.devices = {{"mlx5_0", "0000:2b:00.0", {octets(0, 1), octets(1, 1)}},
                      {"mlx5_1", "0000:ac:00.0", {octets(0, 2), octets(1, 2)}}};
  topology.switches = {{"s"}, {"t"}};
  topology.links = {{"mlx5_0", "s"}, {"mlx5_1", "s"}, {"mlx5_0/2", "t"}, {"mlx5_1/2", "t"}};
  return topology;
}

FlowSpec flow_of(const std::string& from, const std::string& to, uint64_t count = 10) {
  FlowSpec spec;
  spec.name = "f";
  spec.from = from;
  spec.to = to;
  spec.count = count;
  spec.size = 10'000;
  return spec;
}

struct Run {
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  std::string state = "running";
  Flow flow;
  Run(World& world, const FlowSpec& spec)
      : flow(world.fabric, spec, {}, stats, nullptr,
             [this](Result<void> result) { state = result ? "done" : result.error().reason; }) {}
};

uint64_t packets(const Port& port) {
  return port.counters().port_xmit_packets.get() + port.counters().port_rcv_packets.get();
}

}  // namespace

TEST_CASE("device: a flow between second ports moves only their counters") {
  World world(1, two_planes());
  Run run(world, flow_of("mlx5_0/2", "mlx5_1/2"));
  REQUIRE(run.flow.start());
  REQUIRE(world.run_idle());
  CHECK(run.state == "done");
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    CHECK(packets(world.device(name).port(1)) == 0);
    CHECK(packets(world.device(name).port(2)) > 0);
  }
  CHECK(world.link("mlx5_0.2-t").counters().packets.get() > 0);
  CHECK(world.device("mlx5_1").port(2).counters().rx_write_requests.get() == 10);
}

TEST_CASE("device: ports have GUIDs and GIDs of their own, and are found by name") {
  World world(1, two_planes());
  CHECK(world.fabric.port("mlx5_0") == &world.device("mlx5_0").port(1));
  CHECK(world.fabric.port("mlx5_0/1") == &world.device("mlx5_0").port(1));
  CHECK(world.fabric.port("mlx5_0/2") == &world.device("mlx5_0").port(2));
  for (const char* none : {"mlx5_0/3", "mlx5_0/", "/1", "mlx5_9", "s", ""}) {
    CHECK(world.fabric.port(none) == nullptr);
  }
  const Device& device = world.device("mlx5_0");
  CHECK(guid_of(device.port(1).spec()) != guid_of(device.port(2).spec()));
  CHECK(gids_of(device.port(1).spec()) != gids_of(device.port(2).spec()));
}

TEST_CASE("device: a queue pair belongs to the port that it is set to") {
  World world(1, two_planes());
  Device& device = world.device("mlx5_0");
  CompletionQueue cq(8);
  QpInit init;
  init.send_cq = init.receive_cq = &cq;
  Result<Qp*> qp = device.create_qp(init);
  REQUIRE(qp);
  QpAttributes attributes;
  attributes.port = 3;
  uint32_t mask = kQpPkeyIndex | kQpPort | kQpAccess;
  CHECK((*qp)->modify(QpState::kInit, attributes, mask).error().code == EINVAL);
  attributes.port = 2;
  REQUIRE((*qp)->modify(QpState::kInit, attributes, mask));
  CHECK(&(*qp)->port() == &device.port(2));
  device.destroy_qp(**qp);
}

TEST_CASE("port: a link counts as down once, whichever direction of the cable fails") {
  World world;
  PortCounters& counters = world.counters("mb_0");
  auto turn = [&](const char* name, bool up) {
    Link& link = world.link(name);
    LinkParameters parameters = link.parameters();
    parameters.up = up;
    set(link, parameters);
  };
  turn("mb_0-sw_0", true);
  CHECK(counters.link_downed.get() == 0);
  turn("mb_0-sw_0", false);
  turn("sw_0-mb_0", false);
  CHECK(counters.link_downed.get() == 1);
  turn("mb_0-sw_0", true);
  turn("mb_0-sw_0", false);
  CHECK(counters.link_downed.get() == 1);  // not up in between
  turn("mb_0-sw_0", true);
  turn("sw_0-mb_0", true);
  turn("sw_0-mb_0", false);
  CHECK(counters.link_downed.get() == 2);
  CHECK(world.counters("mb_1").link_downed.get() == 0);
}

TEST_CASE("port: packets for a link that is down are discarded, not transmitted") {
  World world;
  LinkParameters parameters = world.link("mb_0-sw_0").parameters();
  parameters.up = false;
  set(world.link("mb_0-sw_0"), parameters);
  FlowSpec spec = flow_of("mb_0", "mb_1", 1);
  spec.timeout = 2;
  spec.retry = 1;
  Run run(world, spec);
  REQUIRE(run.flow.start());
  REQUIRE(world.run_idle());
  CHECK(run.state == "transport retry count exceeded");
  PortCounters& counters = world.counters("mb_0");
  CHECK(counters.port_xmit_packets.get() == 0);
  CHECK(counters.port_xmit_discards.get() == 6);  // three packets, twice
  CHECK(world.link("mb_0-sw_0").losses().lost.get() == 6);
}

TEST_CASE("port: packets to its own address are looped where the cable leads to no switch") {
  Topology pair = default_topology();
  pair.switches.clear();
  pair.links = {{"mb_0", "mb_1"}};
  World world(1, pair);
  for (FlowOp op : {FlowOp::kWrite, FlowOp::kRead, FlowOp::kAtomic, FlowOp::kUd}) {
    FlowSpec spec = flow_of("mb_0", "mb_0");
    spec.op = op;
    INFO(flow_op_info(op).name);
    spec.size = op == FlowOp::kUd ? 1024 : op == FlowOp::kAtomic ? 8 : 10'000;
    TimeNs begin = world.scheduler.now();
    Run run(world, spec);
    REQUIRE(run.flow.start());
    REQUIRE(world.run_idle());
    CHECK(run.state == "done");
    CHECK(run.stats->retransmitted.get() == 0);
    // Not faster than the cable, of 10 Gbit/s.
    CHECK(world.scheduler.now() - begin >= static_cast<TimeNs>(10 * spec.size * 8 / 10));
  }
  CHECK(world.counters("mb_0").port_xmit_packets.get() == 0);
  CHECK(world.counters("mb_0").port_rcv_packets.get() == 0);
  CHECK(world.counters("mb_0").port_xmit_wait.get() == 0);
  CHECK(world.link("mb_0-mb_1").counters().packets.get() == 0);
  // Beside a flow that crosses the cable.
  Run own(world, flow_of("mb_0", "mb_0", 100)), other(world, flow_of("mb_0", "mb_1", 100));
  REQUIRE(own.flow.start());
  REQUIRE(other.flow.start());
  REQUIRE(world.run_idle());
  CHECK(own.state == "done");
  CHECK(other.state == "done");
  CHECK(world.counters("mb_1").rx_unknown_qp.get() == 0);
  CHECK(world.counters("mb_1").rx_write_requests.get() == 100);
}

TEST_CASE("device: flows of a device that leaves fail with the reason, and others continue") {
  World world(1, two_planes());
  FlowSpec endless = flow_of("mlx5_0", "mlx5_1", 1'000'000);
  Run out(world, endless);
  endless.from = "mlx5_1/2";
  endless.to = "mlx5_0/2";
  Run in(world, endless);
  Run other(world, flow_of("mlx5_1", "mlx5_1/1", 100));
  for (Run* run : {&out, &in, &other}) REQUIRE(run->flow.start());
  world.scheduler.run_until(20 * kMicrosecond);
  world.device("mlx5_0").leave();
  CHECK(out.state == "device removed");
  CHECK(in.state == "device removed");
  CHECK(other.state == "running");
  REQUIRE(world.run_idle());
  CHECK(other.state == "done");
  // Packets on the way to the device find no queue pair; those on the way from it have lost their
  // payload.
  CHECK(world.fabric.counters().no_device.get() > 0);
}

TEST_CASE(
    "device: without a driver a device makes no queue pairs; with one its counters begin at 0") {
  World world;
  Device& device = world.device("mb_0");
  Run before(world, flow_of("mb_0", "mb_1"));
  REQUIRE(before.flow.start());
  REQUIRE(world.run_idle());
  CHECK(packets(device.port()) > 0);
  device.leave();
  CHECK_FALSE(device.present());
  Run refused(world, flow_of("mb_1", "mb_0"));
  Result<void> started = refused.flow.start();
  REQUIRE_FALSE(started);
  CHECK(started.error().code == ENODEV);
  CHECK(started.error().reason == "mb_0 has no driver");
  CHECK(device.create_qp({}).error().code == ENODEV);
  device.arrive();
  for (const auto& row : kPortCounters) {
    INFO(row.path);
    CHECK((device.port().counters().*row.member).get() == 0);
  }
  Run after(world, flow_of("mb_1", "mb_0"));
  REQUIRE(after.flow.start());
  REQUIRE(world.run_idle());
  CHECK(after.state == "done");
  CHECK(device.port().counters().rx_write_requests.get() == 10);
}

TEST_CASE("device: a hundred departures and returns under traffic leave nothing behind") {
  World world;
  for (int round = 0; round < 100; ++round) {
    Run run(world, flow_of("mb_0", "mb_1", 1'000'000));
    REQUIRE(run.flow.start());
    world.scheduler.run_until(world.scheduler.now() + 7 * kMicrosecond);
    Device& device = world.device(round % 2 ? "mb_0" : "mb_1");
    device.leave();
    CHECK(run.state == "device removed");
    device.arrive();
  }
  REQUIRE(world.run_idle());
  CHECK(world.outstanding.packets == 0);
  CHECK(world.outstanding.requests == 0);
  CHECK(world.outstanding.flows == 0);
}

TEST_CASE("device: one user's queue pairs leave room for another's, and for root's") {
  World world(1, two_planes());
  Device& device = world.device("mlx5_0");
  CompletionQueue completions{16};
  std::vector<Qp*> made;
  auto take_all = [&](uint32_t user, bool privileged) {
    QpInit init;
    init.send_cq = init.receive_cq = &completions;
    init.send_depth = init.receive_depth = 1;
    init.owner = {1, "greedy", user, privileged};
    size_t before = made.size();
    for (;;) {
      Result<Qp*> qp = device.create_qp(init);
      if (!qp) {
        CHECK(qp.error().code == ENOMEM);
        return made.size() - before;
      }
      made.push_back(*qp);
    }
  };
  constexpr size_t kForUsers = QpTable::kMaxQps - QpTable::kKeptQps;
  CHECK(take_all(65534, false) == kForUsers / 2);
  CHECK(take_all(65533, false) == kForUsers / 4);
  CHECK(take_all(0, true) == QpTable::kMaxQps - kForUsers / 2 - kForUsers / 4);
  for (Qp* qp : made) device.destroy_qp(*qp);
  made.clear();
  CHECK(take_all(65533, false) == kForUsers / 2);
}
