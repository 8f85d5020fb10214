#include "rdma/network/core_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "core/config/config.h"

using namespace rocefs;

namespace {

Topology topology_of(const std::string& text) {
  Result<Config> config = parse_config("[topology]\n" + text, "plan.ini");
  REQUIRE(config);
  return *config->topology;
}

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

std::vector<size_t> ports(const Topology& topology, const CorePlan& plan) {
  std::vector<size_t> loads(plan.cores());
  for (const DeviceSpec& one : topology.devices) loads[plan.core_of(one.name)] += one.ports.size();
  return loads;
}

size_t crossings(const Topology& topology, const CorePlan& plan) {
  auto crosses = [&](const LinkSpec& one) { return plan.core_of(one.a) != plan.core_of(one.b); };
  return static_cast<size_t>(std::count_if(topology.links.begin(), topology.links.end(), crosses));
}

}  // namespace

TEST_CASE("core plan: networks of at most a share stay whole, and are on different cores") {
  CorePlan plan(pairs(2), 2);
  CHECK(plan.cores() == 2);
  CHECK(plan.core_of("a0") == plan.core_of("b0"));
  CHECK(plan.core_of("a1") == plan.core_of("b1"));
  CHECK(plan.core_of("a1") == plan.core_of("s1"));
  CHECK(plan.core_of("a0") != plan.core_of("a1"));
  CHECK(crossings(pairs(5), CorePlan(pairs(5), 2)) == 0);
}

TEST_CASE("core plan: there are no more cores than devices, and one by default") {
  CHECK(CorePlan(pairs(2), 8).cores() == 4);
  CHECK(CorePlan(pairs(1), 8).cores() == 2);
  CHECK(CorePlan(default_topology(), 2).cores() == 2);
  CHECK(CorePlan(default_topology(), 2).core_of("mb_0") == 0);
  CHECK(CorePlan(default_topology(), 2).core_of("sw_0") == 0);
  CHECK(CorePlan(pairs(3), 1).cores() == 1);
  CHECK(CorePlan(Topology(), 4).cores() == 1);
  CHECK(CorePlan().core_of("anything") == 0);
}

TEST_CASE("core plan: a network larger than a share is divided, its devices in runs") {
  const Topology star = topology_of("kind = star\nhosts = 7\n");
  const CorePlan plan(star, 3);
  CHECK(ports(star, plan) == std::vector<size_t>{3, 3, 1});
  for (const char* host : {"h0", "h1", "h2", "sw_0"}) CHECK(plan.core_of(host) == 0);
  for (const char* host : {"h3", "h4", "h5"}) CHECK(plan.core_of(host) == 1);
  // A lone pair beside it stays whole.
  Topology more = star;
  more.devices.push_back(nth_device("x", 100));
  more.devices.push_back(nth_device("y", 101));
  more.links.push_back({"x", "y"});
  const CorePlan both(more, 3);
  CHECK(both.core_of("x") == both.core_of("y"));
  CHECK(ports(more, both) == std::vector<size_t>{3, 3, 3});
}

TEST_CASE("core plan: a device with two ports is whole, with the switch of its first cable") {
  Topology topology = pairs(3);
  topology.devices[2].ports.push_back(second_port(3));
  topology.links.push_back({"a1/2", "s2"});  // a network of 5 ports beside one of 2
  const CorePlan plan(topology, 2);
  CHECK(plan.cores() == 2);
  CHECK(plan.core_of("a1") == plan.core_of("s1"));
  CHECK(plan.core_of("a1/2") == plan.core_of("a1"));
  CHECK(ports(topology, plan) == std::vector<size_t>{4, 3});
}

TEST_CASE("core plan: cores get like numbers of ports") {
  Topology topology = pairs(4);
  topology.links.push_back({"s1", "s2"});  // networks of 2, 4 and 2 ports
  CorePlan plan(topology, 2);
  CHECK(plan.core_of("a1") == plan.core_of("a2"));
  CHECK(plan.core_of("a0") == plan.core_of("a3"));
  CHECK(plan.core_of("a0") != plan.core_of("a1"));
}

TEST_CASE("core plan: hosts of one switch stay together where they can, switches are even") {
  const Topology tree = topology_of("kind = fat-tree\nk = 4\n");
  const CorePlan plan(tree, 4);
  CHECK(ports(tree, plan) == std::vector<size_t>{4, 4, 4, 4});
  std::vector<size_t> switches(4);
  for (const SwitchSpec& one : tree.switches) ++switches[plan.core_of(one.name)];
  CHECK(switches == std::vector<size_t>{5, 5, 5, 5});
  for (const LinkSpec& one : tree.links) {
    if (one.a[0] == 'h') CHECK(plan.core_of(one.a) == plan.core_of(one.b));
  }
  // Pods are whole: cables cross to and from the core switches alone, each of which is in a pod.
  CHECK(crossings(tree, plan) == 16 - 4);
  const Topology wide = topology_of("kind = fat-tree\nk = 8\n");
  for (size_t cores = 2; cores <= 9; ++cores) {
    const CorePlan any(wide, cores);
    const std::vector<size_t> loads = ports(wide, any);
    CHECK(*std::max_element(loads.begin(), loads.end()) <= (128 + cores - 1) / cores);
  }
}

TEST_CASE("core plan: uplinks and what they are cabled to are on the first core") {
  Topology topology = pairs(4);
  topology.uplinks = {{"u0"}, {"u1"}};
  topology.links.push_back({"s2", "u0"});
  topology.links.push_back({"s3", "u1"});
  const CorePlan whole(topology, 2);  // both networks are a share
  for (const char* node : {"a2", "b2", "a3", "b3", "s2", "s3", "u0", "u1"}) {
    CHECK(whole.core_of(node) == 0);
  }
  CHECK(whole.core_of("a0") == 1);
  CHECK(whole.core_of("a1") == 1);
  const CorePlan divided(topology, 4);
  CHECK(divided.cores() == 4);
  for (const char* node : {"s2", "s3", "u0", "u1"}) CHECK(divided.core_of(node) == 0);
  CHECK(ports(topology, divided) == std::vector<size_t>{2, 2, 2, 2});
  CHECK(divided.core_of("a2") == 0);
  CHECK(divided.core_of("a3") != 0);
}

TEST_CASE("core plan: the same in every run, and of nodes without cables, too") {
  Topology topology = pairs(2);
  topology.devices.push_back(nth_device("alone", 50));
  topology.switches.push_back({"empty"});
  for (size_t cores = 2; cores <= 6; ++cores) {
    const CorePlan plan(topology, cores), again(topology, cores);
    for (const char* node : {"a0", "b0", "a1", "b1", "s1", "alone", "empty"}) {
      CHECK(plan.core_of(node) == again.core_of(node));
      CHECK(plan.core_of(node) < plan.cores());
    }
  }
}
