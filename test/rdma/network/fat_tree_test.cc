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
    names.push_back(at.port(port).out->name());
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
