// Routes that follow the state of cables between switches: when, and where packets go meanwhile.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/config/topology_shapes.h"
#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Two leaves and two spines; routes follow after 5 ms unless `delay` says otherwise.
Topology two_spines(std::optional<TimeNs> delay) {
  Shape shape;
  shape.kind = "leaf-spine";
  shape.reconverge = delay;
  return *build_shape(shape);
}

struct Spines : World {
  explicit Spines(std::optional<TimeNs> delay = 5 * kMillisecond) : World(1, two_spines(delay)) {}

  void turn(const std::string& name, bool up) {
    LinkParameters parameters = link(name).parameters();
    parameters.up = up;
    test::set(link(name), parameters);
  }
  void turn_cable(const std::string& a, const std::string& b, bool up) {
    turn(a + "-" + b, up);
    turn(b + "-" + a, up);
  }
  // Number of leaf_0's ways to leaf_1.
  size_t ways(const char* from = "leaf_0", const char* to = "leaf_1") {
    return fabric.find_switch(from)->routes().find(fabric.find_switch(to)->number()).size();
  }
  uint64_t convergences() { return fabric.reconvergence().counters().convergences.get(); }
};

}  // namespace

TEST_CASE("reconvergence: a far cable that goes down is avoided after the delay, not before") {
  Spines world;
  world.scheduler.run_until(10 * kMillisecond);
  world.turn_cable("spine_0", "leaf_1", false);
  world.scheduler.run_until(15 * kMillisecond - 1);
  CHECK(world.ways() == 2);
  CHECK(world.convergences() == 0);
  world.scheduler.run_until(15 * kMillisecond);
  CHECK(world.ways() == 1);
  CHECK(world.ways("spine_0", "leaf_1") == 1);  // back up by leaf_0
  CHECK(world.convergences() == 1);
}

TEST_CASE("reconvergence: a cable that comes back is used again after the delay") {
  Spines world;
  world.turn_cable("spine_0", "leaf_1", false);
  world.scheduler.run_until(20 * kMillisecond);
  world.turn_cable("spine_0", "leaf_1", true);
  world.scheduler.run_until(25 * kMillisecond - 1);
  CHECK(world.ways() == 1);
  world.scheduler.run_until(25 * kMillisecond);
  CHECK(world.ways() == 2);
  CHECK(world.convergences() == 2);
}

TEST_CASE(
    "reconvergence: a cable that was down for less than the delay is avoided as long, later") {
  Spines world;
  world.turn("spine_0-leaf_1", false);
  world.scheduler.run_until(2 * kMillisecond);
  world.turn("spine_0-leaf_1", true);
  world.scheduler.run_until(5 * kMillisecond);
  CHECK(world.ways() == 1);
  world.scheduler.run_until(7 * kMillisecond - 1);
  CHECK(world.ways() == 1);
  world.scheduler.run_until(7 * kMillisecond);
  CHECK(world.ways() == 2);
}

TEST_CASE("reconvergence: a cable is down when one direction is") {
  Spines world;
  world.turn("leaf_1-spine_0", false);
  world.scheduler.run_until(3 * kMillisecond);
  world.turn("spine_0-leaf_1", false);  // no change of the cable
  world.scheduler.run_until(20 * kMillisecond);
  CHECK(world.ways() == 1);
  CHECK(world.convergences() == 1);
}

TEST_CASE("reconvergence: without it routes stay, and it follows at once when turned on or off") {
  Spines world(std::nullopt);
  world.turn_cable("spine_0", "leaf_1", false);
  world.scheduler.run_until(kSecond);
  CHECK(world.ways() == 2);
  Reconvergence& routing = world.fabric.reconvergence();
  routing.apply(std::vector<KnobValue>{uint64_t{1}, uint64_t{kMillisecond}});
  CHECK(world.ways() == 1);
  routing.apply(std::vector<KnobValue>{uint64_t{0}, uint64_t{kMillisecond}});
  CHECK(world.ways() == 2);
}

TEST_CASE("reconvergence: a leaf without any cable left is reached by nobody, until one is back") {
  Spines world;
  for (const char* spine : {"spine_0", "spine_1"}) world.turn_cable("leaf_1", spine, false);
  world.scheduler.run_until(5 * kMillisecond);
  CHECK(world.ways() == 0);
  world.turn_cable("leaf_1", "spine_1", true);
  world.scheduler.run_until(10 * kMillisecond);
  CHECK(world.ways() == 1);
}

TEST_CASE("reconvergence: packets are lost at the dead cable for the delay, and none afterwards") {
  Spines world;
  world.turn_cable("spine_0", "leaf_1", false);
  auto send = [&](TimeNs at) {
    world.scheduler.run_until(at);
    for (uint16_t i = 0; i < 64; ++i) {
      Flavour flavour{0, Ecn::kNotCapable, static_cast<uint16_t>(0xc000 + i)};
      PacketPtr packet = packet_between(world, 1, 2, flavour);
      world.link("h0-leaf_0").sink().receive(packet.release(), world.scheduler.now());
    }
  };
  auto lost = [&] { return world.link("spine_0-leaf_1").losses().lost.get(); };
  send(kMillisecond);
  world.scheduler.run_until(4 * kMillisecond);
  uint64_t before = lost();
  CHECK((before > 16 && before < 48));
  send(6 * kMillisecond);
  world.scheduler.run_until(12 * kMillisecond);
  CHECK(lost() == before);
  CHECK(world.fabric.counters().unroutable.get() == 0);
}
