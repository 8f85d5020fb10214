#include "rdma/network/core_plan.h"

#include <catch2/catch.hpp>

using namespace rocefs;

namespace {

// `pairs` pairs a0-b0, a1-b1, … of devices on a cable each; those from the second have a switch
// between.
Topology pairs(size_t count) {
  Topology topology;
  auto text = [](const char* name, size_t i) { return name + std::to_string(i); };
  for (size_t i = 0; i < count; ++i) {
    topology.devices.push_back(nth_device(text("a", i), 2 * i + 1));
    topology.devices.push_back(nth_device(text("b", i), 2 * i + 2));
    if (i == 0) {
      topology.links.push_back({"a0", "b0"});
      continue;
    }
    topology.switches.push_back({text("s", i)});
    topology.links.push_back({text("a", i), text("s", i)});
    topology.links.push_back({text("s", i), text("b", i)});
  }
  return topology;
}

}  // namespace

TEST_CASE("core plan: nodes that a cable connects are on one core, networks on different ones") {
  CorePlan plan(pairs(2), 2);
  CHECK(plan.cores() == 2);
  CHECK(plan.core_of("a0") == plan.core_of("b0"));
  CHECK(plan.core_of("a1") == plan.core_of("b1"));
  CHECK(plan.core_of("a1") == plan.core_of("s1"));
  CHECK(plan.core_of("a0") != plan.core_of("a1"));
}

TEST_CASE("core plan: there are no more cores than networks, and one by default") {
  CHECK(CorePlan(pairs(2), 8).cores() == 2);
  CHECK(CorePlan(pairs(1), 8).cores() == 1);
  CHECK(CorePlan(default_topology(), 2).cores() == 1);
  CHECK(CorePlan(pairs(3), 1).cores() == 1);
  CHECK(CorePlan().core_of("anything") == 0);
}

TEST_CASE("core plan: a device with two ports joins the networks of both") {
  Topology topology = pairs(2);
  topology.devices[0].ports.push_back(second_port(1));
  topology.links.push_back({"a0/2", "s1"});
  CHECK(CorePlan(topology, 2).cores() == 1);
}

TEST_CASE("core plan: cores get like numbers of ports") {
  Topology topology = pairs(4);
  topology.links.push_back({"s1", "s2"});  // networks of 2, 4 and 2 ports
  CorePlan plan(topology, 2);
  CHECK(plan.core_of("a1") == plan.core_of("a2"));
  CHECK(plan.core_of("a0") == plan.core_of("a3"));
  CHECK(plan.core_of("a0") != plan.core_of("a1"));
}

TEST_CASE("core plan: networks with an uplink are all on the first core") {
  Topology topology = pairs(4);
  topology.uplinks = {{"u0"}, {"u1"}};
  topology.links.push_back({"s2", "u0"});
  topology.links.push_back({"s3", "u1"});
  CorePlan plan(topology, 3);
  CHECK(plan.cores() == 3);
  for (const char* node : {"a2", "s3", "u0", "u1"}) CHECK(plan.core_of(node) == 0);
  CHECK(plan.core_of("a0") != 0);
  CHECK(plan.core_of("a1") != 0);
}
