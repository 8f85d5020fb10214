#include "mad_cc/net/routes.h"

#include <catch2/catch.hpp>

#include "test/mad_cc/net/small_subnet.h"

using namespace rocefs;

namespace {

constexpr Subnet::End kSwitch0{kSw0, 0}, kSwitch1{kSw1, 0}, kNear{kCa0, 1}, kFar{kCa1, 1},
    kBoth1{kCa2, 1}, kBoth2{kCa2, 2};

struct World {
  Subnet subnet = small_subnet();
  SmallState state{subnet};
  Routes now() const { return Routes(subnet, state); }
};

uint32_t hops(const Routes& routes, Subnet::End from, Subnet::End to) {
  auto path = routes.path(from, to);
  return path ? path->hops : 99;
}

}  // namespace

TEST_CASE("routes: each cable is one hop, and adapters do not forward") {
  World world;
  Routes routes = world.now();
  CHECK(hops(routes, kSwitch0, kSwitch0) == 0);
  CHECK(hops(routes, kSwitch0, kSwitch1) == 1);
  CHECK(hops(routes, kNear, kSwitch0) == 1);
  CHECK(hops(routes, kSwitch1, kNear) == 2);
  CHECK(hops(routes, kNear, kFar) == 3);
  CHECK(hops(routes, kNear, kBoth1) == 2);
  CHECK(hops(routes, kBoth1, kBoth2) == 3);
  world.state.down = {{kSw0, 3}};
  routes = world.now();
  CHECK(hops(routes, kNear, kBoth1) == 2);
  CHECK(hops(routes, kNear, kFar) == 99);
  CHECK(hops(routes, kBoth1, kBoth2) == 99);
  CHECK(routes.reachable(kBoth1));
  CHECK_FALSE(routes.reachable(kBoth2));
  CHECK_FALSE(routes.reachable(kSwitch1));
}

TEST_CASE("routes: a path has the rate of its slowest cable in that direction, and the least MTU") {
  World world;
  world.state.rates = {{{kSw0, 3}, 10'000'000'000}, {{kCa1, 1}, 25'000'000'000}};
  world.subnet.nodes[kSw1].ports[1].mtu = 1024;
  Routes routes = world.now();
  CHECK(routes.path(kNear, kFar)->rate_bps == 10'000'000'000);
  CHECK(routes.path(kFar, kNear)->rate_bps == 25'000'000'000);
  CHECK(routes.path(kNear, kBoth1)->rate_bps == 100'000'000'000);
  CHECK(routes.path(kFar, kFar)->rate_bps == 25'000'000'000);
  CHECK(routes.path(kSwitch0, kSwitch1)->rate_bps == 10'000'000'000);
  CHECK(routes.path(kNear, kFar)->mtu == 1024);
  CHECK(routes.path(kFar, kSwitch0)->mtu == 1024);
  CHECK(routes.path(kNear, kBoth2)->mtu == 4096);
}

TEST_CASE("routes: switches forward by the lowest port of the shortest paths") {
  World world;
  CHECK(world.now().forward(kSw0, kSwitch0) == 0);
  CHECK(world.now().forward(kSw0, kNear) == 1);
  CHECK(world.now().forward(kSw0, kFar) == 3);
  CHECK(world.now().forward(kSw1, kNear) == 3);
  CHECK(world.now().forward(kSw1, kSwitch0) == 3);
  // Second cable between the switches.
  SubnetPort &a = world.subnet.nodes[kSw0].ports[4], &b = world.subnet.nodes[kSw1].ports[1];
  world.subnet.nodes[kCa1].ports[1].peer = SubnetPort::kNoPeer;
  a.peer = kSw1;
  a.peer_port = 1;
  b.peer = kSw0;
  b.peer_port = 4;
  CHECK(world.now().forward(kSw0, kBoth2) == 3);
  CHECK(world.now().forward(kSw1, kNear) == 1);
  world.state.down = {{kSw0, 3}};
  CHECK(world.now().forward(kSw0, kBoth2) == 4);
  CHECK(world.now().forward(kSw0, kFar) == Routes::kNoWay);
}

TEST_CASE("routes: the result does not depend on the order of the cables") {
  World world;
  // Parallel to the cable from port 3 to port 3.
  SubnetPort &a = world.subnet.nodes[kSw0].ports[1], &b = world.subnet.nodes[kSw1].ports[1];
  a.peer = kSw1;
  b.peer = kSw0;
  CHECK(world.now().forward(kSw0, kBoth2) == 1);
  CHECK(world.now().forward(kSw1, kBoth1) == 1);
  world.state.down = {{kSw0, 1}};
  CHECK(world.now().forward(kSw0, kBoth2) == 3);
}

TEST_CASE("routes: an absent node has no route, not even to itself") {
  World world;
  world.state.absent = {kCa1};
  Routes routes = world.now();
  CHECK_FALSE(routes.present(kCa1));
  CHECK(hops(routes, kNear, kFar) == 99);
  CHECK(hops(routes, kFar, kFar) == 99);
  CHECK(routes.forward(kSw1, kFar) == Routes::kNoWay);
  CHECK_FALSE(routes.across({kSw1, 1}));
  CHECK(routes.across({kSw1, 2}) == kBoth2);
  CHECK_FALSE(routes.across({kSw0, 4}));
}

TEST_CASE("routes: two adapters on one cable need no switch") {
  World world;
  Subnet& subnet = world.subnet;
  subnet.nodes[kCa0].ports[1].peer = kCa1;
  subnet.nodes[kCa1].ports[1].peer = kCa0;
  subnet.nodes[kCa1].ports[1].peer_port = 1;
  subnet.manager = kNear;
  CHECK(hops(world.now(), kNear, kFar) == 1);
  CHECK(world.now().reachable(kNear));
  CHECK(world.now().reachable(kFar));
  CHECK_FALSE(world.now().reachable(kBoth1));
  world.state.down = {{kCa0, 1}};
  CHECK_FALSE(world.now().reachable(kNear));
}
