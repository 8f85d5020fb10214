#include "tools/rocefs/instance/fabric_subnets.h"

#include <catch2/catch.hpp>

#include "core/config/topology_shapes.h"
#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

struct Made : World {
  FabricSubnets subnets{fabric};
  explicit Made(const Topology& topology) : World(1, topology) {}
  FabricSubnet& only() {
    REQUIRE(subnets.all().size() == 1);
    return *subnets.all()[0];
  }
};

Topology shape(const char* kind, std::initializer_list<std::pair<const char*, const char*>> keys) {
  Shape said;
  REQUIRE(set_shape_key(said, "kind", kind));
  for (auto [key, value] : keys) REQUIRE(set_shape_key(said, key, value));
  return *build_shape(said);
}

// Ends as `NAME/PORT`, in the order of LIDs.
std::string lids(const Subnet& subnet) {
  std::string text;
  for (size_t i = 0; i < subnet.by_lid.size(); ++i) {
    const Subnet::End& end = subnet.by_lid[i];
    CHECK(subnet.at(end).lid == i + 1);
    CHECK(subnet.find(static_cast<uint16_t>(i + 1)) == end);
    text += fmt::format("{}{}/{}", i ? " " : "", subnet.nodes[end.node].name, end.port);
  }
  return text;
}

// Every cable, listed from both of its ends. Checks that both agree.
std::string cables(const Subnet& subnet) {
  std::string text;
  for (const SubnetNode& node : subnet.nodes) {
    for (size_t number = 0; number < node.ports.size(); ++number) {
      const SubnetPort& port = node.ports[number];
      if (port.peer == SubnetPort::kNoPeer) continue;
      const SubnetNode& far = subnet.nodes[port.peer];
      text += fmt::format("{}/{}-{}/{} ", node.name, number, far.name, port.peer_port);
      CHECK(&subnet.nodes[far.ports[port.peer_port].peer] == &node);
      CHECK(far.ports[port.peer_port].peer_port == number);
    }
  }
  return text;
}

Topology with_second_port() {
  Topology topology = star(2);
  topology.devices[0].ports.push_back(second_port(1));
  return topology;
}

}  // namespace

TEST_CASE("fabric subnets: a star's switch is the manager, and channel adapters follow in order") {
  Made made(default_topology());
  const Subnet& subnet = made.only().subnet();
  CHECK(lids(subnet) == "sw_0/0 mb_0/1 mb_1/1");
  CHECK(cables(subnet) == "mb_0/1-sw_0/1 mb_1/1-sw_0/2 sw_0/1-mb_0/1 sw_0/2-mb_1/1 ");
  CHECK(subnet.manager_lid() == 1);
  CHECK(subnet.nodes[subnet.manager.node].is_switch);
  CHECK(&made.subnets.subnet_of(made.device("mb_1").port()) == &subnet);
  Subnet::End end = made.subnets.end_of(made.device("mb_1").port());
  CHECK(subnet.nodes[end.node].name == "mb_1");
  CHECK(subnet.at(end).lid == 3);
}

TEST_CASE("fabric subnets: GUIDs are those of the tree, and each switch has its own") {
  Made made(default_topology());
  const Subnet& subnet = made.only().subnet();
  const SubnetNode& mb_1 = subnet.nodes[1];
  CHECK(mb_1.guid == 0x02004cfffe6d6202);           // node_guid
  CHECK(mb_1.ports[1].guid == 0x00004cfffe6d6202);  // gids/0: the universal/local bit is inverted
  CHECK(subnet.nodes[2].guid == 0x02004c7377000001);
  CHECK(subnet.nodes[2].ports[0].guid == 0x02004c7377000001);
  CHECK(mb_1.ports[1].mtu == 4096);
}

TEST_CASE("fabric subnets: a port reports its own path MTU") {
  Topology topology = default_topology();
  topology.devices[1].ports[0].mtu = 1024;
  Made made(topology);
  CHECK(made.only().subnet().nodes[0].ports[1].mtu == 4096);
  CHECK(made.only().subnet().nodes[1].ports[1].mtu == 1024);
}

TEST_CASE("fabric subnets: a dumbbell and a leaf-spine network are one subnet each") {
  Made dumbbell(shape("dumbbell", {{"hosts", "4"}}));
  CHECK(lids(dumbbell.only().subnet()) == "sw_0/0 h0/1 h1/1 h2/1 h3/1 sw_1/0");
  CHECK(cables(dumbbell.only().subnet()).find("sw_0/3-sw_1/3") != std::string::npos);
  Made clos(shape("leaf-spine", {{"hosts", "4"}, {"leaves", "2"}, {"spines", "2"}}));
  CHECK(lids(clos.only().subnet()) == "leaf_0/0 h0/1 h1/1 h2/1 h3/1 leaf_1/0 spine_0/0 spine_1/0");
  CHECK(cables(clos.only().subnet()) ==
        "h0/1-leaf_0/1 h1/1-leaf_0/2 h2/1-leaf_1/1 h3/1-leaf_1/2 "
        "leaf_0/1-h0/1 leaf_0/2-h1/1 leaf_0/3-spine_0/1 leaf_0/4-spine_1/1 "
        "leaf_1/1-h2/1 leaf_1/2-h3/1 leaf_1/3-spine_0/2 leaf_1/4-spine_1/2 "
        "spine_0/1-leaf_0/3 spine_0/2-leaf_1/3 spine_1/1-leaf_0/4 spine_1/2-leaf_1/4 ");
}

TEST_CASE("fabric subnets: back to back, the first port is the manager") {
  Topology topology = default_topology();
  topology.switches.clear();
  topology.links = {cable("mb_0", "mb_1", 1'000'000'000)};
  Made made(topology);
  CHECK(lids(made.only().subnet()) == "mb_0/1 mb_1/1");
  CHECK(made.only().rate_bps(1, 1) == 1'000'000'000);
}

TEST_CASE("fabric subnets: the ports of a device may be in two subnets, with LIDs of their own") {
  Topology topology = with_second_port();
  topology.switches.push_back({"t"});
  topology.links.push_back(cable("t", "h1/2", 1'000'000'000));
  Made made(topology);
  REQUIRE(made.subnets.all().size() == 2);
  const Subnet& first = made.subnets.all()[0]->subnet();
  const Subnet& second = made.subnets.all()[1]->subnet();
  CHECK(lids(first) == "s/0 h1/1 h2/1");
  CHECK(lids(second) == "t/0 h1/2");
  CHECK(first.nodes[0].guid == second.nodes[0].guid);
  CHECK(first.nodes[0].port_count() == 2);
  CHECK(first.nodes[0].ports[1].member);
  CHECK_FALSE(first.nodes[0].ports[2].member);
  CHECK(first.nodes[0].ports[2].lid == 0);
  CHECK(second.nodes[0].ports[2].member);
  CHECK_FALSE(second.nodes[0].ports[1].member);
  CHECK(second.nodes[1].guid == 0x02004c7377000002);
  Device& h1 = made.device("h1");
  CHECK(&made.subnets.subnet_of(h1.port(1)) == &first);
  CHECK(&made.subnets.subnet_of(h1.port(2)) == &second);
  CHECK(made.subnets.end_of(h1.port(2)) == Subnet::End{0, 2});
  CHECK(made.subnets.index_of(h1.port(2)) == 1);
}

TEST_CASE("fabric subnets: two ports of a device in one subnet have two LIDs and are one node") {
  Topology topology = with_second_port();
  topology.links.push_back(cable("s", "h1/2", 1'000'000'000));
  Made made(topology);
  const Subnet& subnet = made.only().subnet();
  CHECK(lids(subnet) == "s/0 h1/1 h1/2 h2/1");
  CHECK(subnet.nodes.size() == 3);
  CHECK(subnet.nodes[0].ports[1].guid != subnet.nodes[0].ports[2].guid);
}

TEST_CASE(
    "fabric subnets: a port without a cable is a subnet alone, and a failed cable still connects") {
  Topology topology = star(2);
  topology.links.pop_back();
  topology.links[0].up = false;
  Made made(topology);
  REQUIRE(made.subnets.all().size() == 2);
  CHECK(lids(made.subnets.all()[0]->subnet()) == "s/0 h1/1");
  CHECK(lids(made.subnets.all()[1]->subnet()) == "h2/1");
  FabricSubnet& alone = *made.subnets.all()[1];
  CHECK_FALSE(alone.up(0, 1));
  CHECK(alone.rate_bps(0, 1) == 0);
  alone.clear_counters(0, 1, alone.counters(0, 1));
}

TEST_CASE("fabric subnets: a cable is up only if both of its directions are") {
  Made made(default_topology());
  FabricSubnet& state = made.only();
  CHECK(state.up(0, 1));
  CHECK(state.up(2, 1));
  CHECK(state.up(2, 0));
  LinkParameters parameters = made.link("sw_0-mb_0").parameters();
  parameters.up = false;
  parameters.rate_bps = 25'000'000'000;
  set(made.link("sw_0-mb_0"), parameters);
  CHECK_FALSE(state.up(0, 1));
  CHECK_FALSE(state.up(2, 1));
  CHECK(state.up(2, 2));
  CHECK(state.rate_bps(2, 1) == 25'000'000'000);  // each end reports its transmit rate
  CHECK(state.rate_bps(0, 1) == 10'000'000'000);
}

TEST_CASE("fabric subnets: nodes have the tree's descriptions, and leave with their driver") {
  Made made(default_topology());
  FabricSubnet& state = made.only();
  CHECK(state.description(0) == "mb_0 emulated RoCEv2 HCA");
  CHECK(state.description(2) == "sw_0 emulated switch");
  NodeDescription& description = made.device("mb_0").description();
  description.apply(std::vector<KnobValue>{std::string("rack 7")});
  CHECK(state.description(0) == "rack 7");
  CHECK(state.present(0));
  made.device("mb_0").leave();
  CHECK_FALSE(state.present(0));
  CHECK(state.present(2));
  made.device("mb_0").arrive();
  CHECK(state.present(0));
  CHECK(state.description(0) == "mb_0 emulated RoCEv2 HCA");
}

TEST_CASE(
    "fabric subnets: a channel adapter's counters are those of the tree, and can be cleared") {
  Made made(default_topology());
  FabricSubnet& state = made.only();
  PortCounters& shown = made.counters("mb_0");
  uint64_t value = 0;
  for (const auto& row : kPortCounters) (shown.*row.member).set(value += 100);
  PerfCounters all = state.counters(0, 1);
  CHECK(all.xmit_data == shown.port_xmit_data.get() / 4);
  CHECK(all.rcv_data == shown.port_rcv_data.get() / 4);
  CHECK(all.xmit_packets == shown.port_xmit_packets.get());
  CHECK(all.rcv_packets == shown.port_rcv_packets.get());
  CHECK(all.unicast_xmit == shown.unicast_xmit_packets.get());
  CHECK(all.unicast_rcv == shown.unicast_rcv_packets.get());
  CHECK(all.rcv_errors == shown.port_rcv_errors.get());
  CHECK(all.link_downed == shown.link_downed.get());
  CHECK(all.xmit_discards == shown.port_xmit_discards.get());
  CHECK(all.xmit_wait == shown.port_xmit_wait.get());
  CHECK(all.symbol_errors == 0);
  CHECK(all.multicast_xmit == shown.multicast_xmit_packets.get());
  CHECK(all.multicast_rcv == shown.multicast_rcv_packets.get());
  PerfCounters which;
  which.multicast_xmit = 1;
  which.rcv_errors = 1;
  which.xmit_data = 1;
  which.symbol_errors = 1;
  state.clear_counters(0, 1, which);
  CHECK(shown.port_rcv_errors.get() == 0);
  CHECK(shown.port_xmit_data.get() == 0);
  CHECK(shown.port_rcv_data.get() == 200);
  CHECK(shown.multicast_xmit_packets.get() == 0);
  CHECK(shown.multicast_rcv_packets.get() == all.multicast_rcv);
  CHECK(shown.rx_write_requests.get() != 0);
}

TEST_CASE("fabric subnets: a switch's port counts delivered packets, not lost ones") {
  Star made(2);
  FabricSubnets subnets(made.fabric);
  FabricSubnet& state = *subnets.all()[0];
  set(made.link("s-h2"), lossy(made.link("s-h2").parameters(), 1));
  made.arrive(1, 2);
  made.arrive(1, 2);
  REQUIRE(made.run_idle());
  constexpr size_t kHub = 2;
  PerfCounters out = state.counters(kHub, 2);
  CHECK(out.xmit_packets == 2);
  CHECK(out.unicast_xmit == 2);
  CHECK(out.xmit_data == 2 * kFullPacket / 4);
  CHECK(out.rcv_packets == 0);
  // Incoming direction of the switch's port: packets and octets, less the lost ones.
  Link& in = made.link("h1-s");
  in.counters().packets.set(7);
  in.losses().lost.set(3);
  in.counters().bytes.set(4000);
  in.losses().lost_bytes.set(1000);
  PerfCounters at = state.counters(kHub, 1);
  CHECK(at.rcv_packets == 4);
  CHECK(at.unicast_rcv == 4);
  CHECK(at.rcv_data == 750);
  CHECK(at.xmit_packets == 0);
  made.egress_counters(1, 0).dropped.add(2);
  made.egress_counters(1, 7).dropped.add(3);
  CHECK(state.counters(kHub, 1).xmit_discards == 5);
  CHECK(state.counters(kHub, 0).xmit_packets == 0);
}

TEST_CASE("fabric subnets: clearing a switch's port clears the counters of its links") {
  Star made(2);
  FabricSubnets subnets(made.fabric);
  FabricSubnet& state = *subnets.all()[0];
  Link& in = made.link("h1-s");
  Link& out = made.link("s-h1");
  for (Link* link : {&in, &out}) {
    link->counters().packets.set(7);
    link->losses().lost.set(3);
    link->counters().bytes.set(4000);
    link->losses().lost_bytes.set(1000);
  }
  made.egress_counters(1, 2).dropped.add(2);
  PerfCounters which;
  which.rcv_packets = 1;
  which.xmit_data = 1;
  state.clear_counters(2, 1, which);
  CHECK(in.counters().packets.get() == 0);
  CHECK(in.losses().lost.get() == 0);
  CHECK(in.counters().bytes.get() == 4000);
  CHECK(out.counters().packets.get() == 7);
  CHECK(out.counters().bytes.get() == 0);
  CHECK(state.counters(2, 1).xmit_discards == 2);
  in.losses().lost.add();  // a packet in flight when the counters were cleared
  CHECK(state.counters(2, 1).rcv_packets == 0);
  which.xmit_discards = 1;
  state.clear_counters(2, 1, which);
  CHECK(state.counters(2, 1).xmit_discards == 0);
}

TEST_CASE("fabric subnets: a switch's port counts how often its link went down") {
  Star made(2);
  FabricSubnets subnets(made.fabric);
  FabricSubnet& state = *subnets.all()[0];
  auto set = [&](const char* name, bool up) {
    Link& link = made.link(name);
    LinkParameters parameters = link.parameters();
    parameters.up = up;
    link.apply(Link::values_of(parameters));
  };
  set("h1-s", false);
  set("s-h1", false);  // it is down already
  set("h1-s", true);
  CHECK(state.counters(2, 1).link_downed == 1);
  set("s-h1", true);
  CHECK(state.counters(2, 1).link_downed == 1);
  set("s-h1", false);
  CHECK(state.counters(2, 1).link_downed == 2);
  CHECK(state.counters(2, 2).link_downed == 0);
  PerfCounters which;
  which.link_downed = 1;
  state.clear_counters(2, 1, which);
  CHECK(state.counters(2, 1).link_downed == 0);
}

TEST_CASE("fabric subnets: a subnet ends at an uplink, which answers no MADs") {
  Result<Topology> topology = uplink_topology("127.0.0.2");
  REQUIRE(topology);
  Made made(*topology);
  FabricSubnet& subnet = made.only();
  CHECK(lids(subnet.subnet()) == "sw_0/0 mb_0/1 mb_1/1");
  size_t hub = subnet.subnet().find(1)->node;
  const SubnetNode& node = subnet.subnet().nodes[hub];
  REQUIRE(node.port_count() == 3);
  CHECK(node.ports[3].peer == SubnetPort::kNoPeer);
  CHECK_FALSE(subnet.up(hub, 3));
}
