// Equal-cost paths: all of them are found, flows spread over them by the hash of their five-tuple,
// each stays on its own, and those of a path that is down move to the others.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// h1, h2 on leaf a, h3, h4 on leaf b, none on leaf c, and `spines` between the leaves.
Topology three_leaves(unsigned spines) {
  Topology topology;
  topology.switches = {{"a"}, {"b"}, {"c"}};
  for (unsigned n = 1; n <= 4; ++n) {
    topology.devices.push_back(host(n));
    topology.links.push_back(cable("h" + std::to_string(n), n <= 2 ? "a" : "b", 10'000'000'000));
  }
  for (unsigned n = 1; n <= spines; ++n) {
    std::string name = "p" + std::to_string(n);
    topology.switches.push_back({name});
    for (const char* leaf : {"a", "b", "c"}) {
      topology.links.push_back(cable(leaf, name, 10'000'000'000));
    }
  }
  return topology;
}

struct Leaves : World {
  explicit Leaves(unsigned spines, uint64_t seed = 1) : World(seed, three_leaves(spines)) {}
  // The choice of a leaf, by the source port.
  size_t choice(uint16_t port, const char* leaf = "a") {
    PacketPtr packet = packet_between(*this, 1, 3, {0, Ecn::kNotCapable, port});
    std::optional<size_t> egress = fabric.find_switch(leaf)->route(*packet);
    REQUIRE(egress);
    return *egress;
  }
  void turn(const std::string& name, bool up) {
    LinkParameters parameters = link(name).parameters();
    parameters.up = up;
    test::set(link(name), parameters);
  }
};

// The heaviest over the fair load of as many links as flows, each flow sprayed over `ports` source
// ports; the mean over 1,000 seeds.
double heaviest(size_t flows, size_t ports) {
  World world;
  Rng rng(7, "flows");
  double sum = 0;
  constexpr uint64_t kSeeds = 1000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RouteTable table(Rng(seed, "ecmp s").next());
    std::vector<size_t> load(flows);
    for (size_t flow = 0; flow < flows; ++flow) {
      auto from = static_cast<unsigned>(1 + flow);
      auto base = static_cast<uint16_t>(0xc000 + rng.below(0x3000));
      for (size_t port = 0; port < ports; ++port) {
        auto source_port = static_cast<uint16_t>(base + port);
        PacketPtr packet = packet_between(world, from, 200, {0, Ecn::kNotCapable, source_port});
        ++load[RouteTable::choose(table.flow_hash(*packet), flows)];
      }
    }
    sum += static_cast<double>(*std::max_element(load.begin(), load.end())) /
           static_cast<double>(ports);
  }
  return sum / kSeeds;
}

}  // namespace

// Expectations of balls in bins (congestion.md). The bands are the issue's, 10 % for whole flows
// and 5 % for sprayed ones; the standard error over 1,000 seeds is below 1.5 % and 0.6 %.
TEST_CASE("ecmp: the heaviest load of plain and of sprayed flows is what statistics predict") {
  struct Expectation {
    size_t flows, ports;
    double heaviest, band;
  };
  for (const Expectation& one : std::initializer_list<Expectation>{{4, 1, 2.11, 0.10},
                                                                   {8, 1, 2.59, 0.10},
                                                                   {16, 1, 3.08, 0.10},
                                                                   {8, 16, 1.38, 0.05},
                                                                   {8, 64, 1.19, 0.05}}) {
    double measured = heaviest(one.flows, one.ports);
    std::printf("REPORT ecmp: %2zu flows, %2zu ports each: heaviest %.3f, expected %.2f\n",
                one.flows, one.ports, measured, one.heaviest);
    CHECK(measured == Approx(one.heaviest).epsilon(one.band));
  }
}

// 4,000 of 16,000 flows choose path 0 at the first switch; at the next each of the 4 paths gets
// 1,000 of these, with a standard deviation of 27: 10 % is more than three of them.
TEST_CASE("ecmp: the choices of consecutive switches are independent") {
  World world;
  RouteTable leaf(Rng(1, "ecmp leaf").next()), spine(Rng(1, "ecmp spine").next());
  std::vector<double> load(4);
  for (unsigned port = 0; port < 16'000; ++port) {
    PacketPtr packet =
        packet_between(world, 1, 2, {0, Ecn::kNotCapable, static_cast<uint16_t>(0xc000 + port)});
    if (RouteTable::choose(leaf.flow_hash(*packet), 4) == 0) {
      load[RouteTable::choose(spine.flow_hash(*packet), 4)] += 1;
    }
  }
  for (double one : load) CHECK(one == Approx(1000).epsilon(0.10));
}

TEST_CASE("ecmp: the hash covers the five-tuple, and no field that may change on the way") {
  World world;
  RouteTable table(5);
  auto hash = [&](auto change) {
    PacketPtr packet = packet_between(world, 1, 2, {});
    change(*packet);
    uint64_t value = table.flow_hash(*packet);
    return value;
  };
  auto flip = [&](size_t at) { return hash([at](Packet& packet) { packet.header[at] ^= 1; }); };
  std::set<uint64_t> all{hash([](Packet&) {})};
  for (size_t at : {9, 12, 15, 16, 19, 20, 21, 22, 23}) CHECK(all.insert(flip(at)).second);
  for (size_t at : {1, 4, 8, 10, 40}) CHECK(all.contains(flip(at)));  // class, ID, TTL, sum, BTH
}

TEST_CASE("ecmp: flows spread over all shortest paths, and all packets arrive") {
  Leaves world(4);
  std::map<size_t, int> used;
  constexpr unsigned kFlows = 400;
  for (unsigned i = 0; i < kFlows; ++i) {
    auto port = static_cast<uint16_t>(0xc000 + i);
    ++used[world.choice(port)];
    CHECK(world.choice(port) == world.choice(port));
    PacketPtr packet = packet_between(world, 1, 3, {0, Ecn::kNotCapable, port});
    world.link("h1-a").sink().receive(packet.release(), 0);
  }
  CHECK(used.size() == 4);
  REQUIRE(world.run_idle());
  CHECK(world.counters("h3").port_rcv_packets.get() == kFlows);
  for (const char* spine : {"p1", "p2", "p3", "p4"}) {
    uint64_t up = world.link(fmt::format("a-{}", spine)).counters().packets.get();
    uint64_t down = world.link(fmt::format("{}-b", spine)).counters().packets.get();
    CHECK(up > kFlows / 8);
    CHECK(up == down);
  }
  // Neighbours on a leaf do not use the spines.
  world.link("h1-a").sink().receive(packet_between(world, 1, 2, {}).release(), 0);
  REQUIRE(world.run_idle());
  CHECK(world.counters("h2").port_rcv_packets.get() == 1);
}

TEST_CASE("ecmp: flows of a failed path move to the other paths, and the others stay") {
  Leaves world(4);
  constexpr unsigned kFlows = 1000;
  std::vector<size_t> before;
  for (unsigned i = 0; i < kFlows; ++i) {
    before.push_back(world.choice(static_cast<uint16_t>(0xc000 + i)));
  }
  world.turn("a-p2", false);
  size_t dead = 3;  // behind h1 and h2 the spines' ports begin
  std::map<size_t, int> moved;
  for (unsigned i = 0; i < kFlows; ++i) {
    size_t now = world.choice(static_cast<uint16_t>(0xc000 + i));
    CHECK(now != dead);
    if (before[i] == dead) {
      ++moved[now];
    } else {
      CHECK(now == before[i]);
    }
  }
  CHECK(moved.size() == 3);
  for (auto [hop, flows] : moved) CHECK(flows > 50);  // 83 each, 7 standard deviation
  for (const char* name : {"a-p1", "a-p3", "a-p4"}) world.turn(name, false);
  CHECK(world.choice(0xc000) == before[0]);  // and is lost there
  for (const char* name : {"a-p1", "a-p2", "a-p3", "a-p4"}) world.turn(name, true);
  for (unsigned i = 0; i < kFlows; ++i) {
    CHECK(world.choice(static_cast<uint16_t>(0xc000 + i)) == before[i]);
  }
}

TEST_CASE("ecmp: the switches of a fabric choose independently") {
  Leaves world(4);
  int same = 0;
  for (uint16_t i = 0; i < 1000; ++i) {
    auto port = static_cast<uint16_t>(0xc000 + i);
    // The spines are behind two hosts' ports at a, and the only ports of c.
    same += world.choice(port, "a") == world.choice(port, "c") + 2;
  }
  CHECK(same == Approx(250).margin(50));  // a quarter by chance; 3.6 standard deviations
}

TEST_CASE("ecmp: the seed decides the choices") {
  Leaves one(8, 1), same(8, 1), other(8, 2);
  unsigned differ = 0;
  for (unsigned i = 0; i < 100; ++i) {
    auto port = static_cast<uint16_t>(0xc000 + i);
    CHECK(one.choice(port) == same.choice(port));
    differ += one.choice(port) != other.choice(port);
  }
  CHECK(differ > 50);
}

TEST_CASE("destinations: a thousand of both families are found, and no others") {
  World world;
  DestinationTable table;
  auto ipv6 = [](uint32_t n) {
    Ip ip{0x20, 0x01};
    std::memcpy(ip.data() + 12, &n, sizeof n);
    return ip;
  };
  auto ipv4 = [](uint16_t n) {
    return mapped_ipv4({10, 1, static_cast<uint8_t>(n >> 8), static_cast<uint8_t>(n)});
  };
  for (uint16_t n = 0; n < 500; ++n) {
    table.set(ipv4(n), {n, 7});
    table.set(ipv6(n), {7, n});
  }
  auto find = [&](const Ip& to) -> std::optional<Destination> {
    PacketPtr packet = packet_between(world, 1, 2, {});
    if (is_mapped_ipv4(to)) {
      std::copy_n(to.begin() + 12, 4, packet->header.begin() + 16);
    } else {
      packet->header[0] = 0x60;
      std::copy(to.begin(), to.end(), packet->header.begin() + 24);
    }
    const Destination* found = table.find(*packet);
    return found ? std::optional(*found) : std::nullopt;
  };
  for (uint16_t n = 0; n < 500; ++n) {
    const std::optional<Destination> four = find(ipv4(n)), six = find(ipv6(n));
    REQUIRE((four && six));
    CHECK((four->hub == n && four->port == 7));
    CHECK((six->hub == 7 && six->port == n));
  }
  CHECK_FALSE(find(mapped_ipv4({10, 2, 0, 1})));
  CHECK_FALSE(find(ipv6(500)));
}

TEST_CASE("destinations: an address gets the place of a MAC, and none of an unknown MAC") {
  World world;
  DestinationTable table;
  PacketPtr packet = packet_between(world, 1, 2, {});
  Ip to{};
  to[10] = to[11] = 0xff;
  std::copy_n(packet->header.begin() + 16, 4, to.begin() + 12);
  const Mac mac{2, 0, 0, 0, 0, 1};
  table.copy(to, mac);
  CHECK(table.find(*packet) == nullptr);
  table.set(mac, {3, 4});
  table.copy(to, mac);
  REQUIRE(table.find(*packet));
  CHECK(table.find(*packet)->hub == 3);
}

TEST_CASE("route table: switches with the same next hops share them") {
  RouteTable table(1);
  const uint16_t up[] = {2, 3}, down[] = {1};
  for (size_t hub = 0; hub < 1000; ++hub)
    table.set(hub, hub == 5 ? std::span<const uint16_t>(down) : up);
  CHECK(table.distinct() == 2);
  CHECK(table.find(5).front() == 1);
  CHECK(table.find(999).size() == 2);
  CHECK(table.find(1000).empty());
  table.clear();
  CHECK(table.find(5).empty());
}
