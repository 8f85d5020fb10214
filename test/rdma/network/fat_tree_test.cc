// Routes of large fabrics: fat-trees by [topology], their next hops, and what they cost.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/config/topology_shapes.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Topology fat_tree(unsigned k) {
  Shape shape;
  shape.kind = "fat-tree";
  shape.k = k;
  return *build_shape(shape);
}

// Next hops of one switch towards another, as the names of the links.
std::vector<std::string> hops_between(World& world, const char* from, const char* to) {
  Switch& at = *world.fabric.find_switch(from);
  std::vector<std::string> names;
  for (uint16_t port : at.routes().find(world.fabric.find_switch(to)->number())) {
    names.push_back(at.port(port).egress.link->name());
  }
  return names;
}

}  // namespace

TEST_CASE("fat-tree: a switch goes up by all its cables, and down by one") {
  World world(1, fat_tree(4));
  using Names = std::vector<std::string>;
  CHECK(hops_between(world, "edge_0_0", "edge_3_1") ==
        Names{"edge_0_0-agg_0_0", "edge_0_0-agg_0_1"});
  CHECK(hops_between(world, "edge_0_0", "edge_0_1") ==
        Names{"edge_0_0-agg_0_0", "edge_0_0-agg_0_1"});
  CHECK(hops_between(world, "agg_0_1", "edge_3_1") == Names{"agg_0_1-core_2", "agg_0_1-core_3"});
  CHECK(hops_between(world, "agg_0_1", "edge_0_0") == Names{"agg_0_1-edge_0_0"});
  CHECK(hops_between(world, "core_3", "edge_3_1") == Names{"core_3-agg_3_1"});
}

TEST_CASE("fat-tree: the next hops of a switch are as many sets as it has different ones") {
  World world(1, fat_tree(8));
  // Up, and down by each cable.
  CHECK(world.fabric.find_switch("edge_0_0")->routes().distinct() == 1);
  CHECK(world.fabric.find_switch("agg_0_0")->routes().distinct() == 1 + 4);
  CHECK(world.fabric.find_switch("core_0")->routes().distinct() == 8);
}

TEST_CASE("way: from port to port it is as long as the packets' route, and leads back") {
  World world(1, fat_tree(4));
  auto names = [&](const char* from, const char* to) {
    std::vector<std::string> links;
    for (const Link* link : world.fabric.way(*world.fabric.port(from), *world.fabric.port(to))) {
      links.push_back(link->name());
    }
    return links;
  };
  using Names = std::vector<std::string>;
  CHECK(names("h0", "h15") == Names{"h0-edge_0_0", "edge_0_0-agg_0_0", "agg_0_0-core_0",
                                    "core_0-agg_3_0", "agg_3_0-edge_3_1", "edge_3_1-h15"});
  CHECK(names("h15", "h0").size() == 6);
  CHECK(names("h0", "h1") == Names{"h0-edge_0_0", "edge_0_0-h1"});
  // A cable that is down counts.
  LinkParameters down = world.link("edge_0_0-h1").parameters();
  down.up = false;
  set(world.link("edge_0_0-h1"), down);
  CHECK(names("h0", "h1").size() == 2);
}

TEST_CASE("way: a cable is one, and without cables there is none") {
  Topology topology;
  for (const char* name : {"a", "b", "c", "d"}) {
    topology.devices.push_back(nth_device(name, topology.devices.size() + 1));
  }
  topology.switches = {{"s"}, {"t"}};
  auto cable = [&](const char* from, const char* to) {
    LinkSpec link;
    link.a = from;
    link.b = to;
    topology.links.push_back(link);
  };
  cable("a", "b");
  cable("c", "s");
  cable("d", "t");
  World world(1, topology);
  auto steps = [&](const char* from, const char* to) {
    return world.fabric.way(*world.fabric.port(from), *world.fabric.port(to)).size();
  };
  CHECK(steps("a", "b") == 1);
  CHECK(steps("a", "c") == 0);
  CHECK(steps("c", "d") == 0);
}
