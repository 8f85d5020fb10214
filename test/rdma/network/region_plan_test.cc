#include "rdma/network/region_plan.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/config/config.h"

using namespace rocefs;

namespace {

Topology topology_of(const std::string& text) {
  Result<Config> config = parse_config("[topology]\n" + text, "plan.ini");
  REQUIRE(config);
  return *config->topology;
}

}  // namespace

TEST_CASE("region plan: a device is in the region of its switch, and regions have like sizes") {
  const Topology topology = topology_of("kind = fat-tree\nk = 16\n");
  const CorePlan plan = plan_regions(topology, 64);
  CHECK(plan.cores() == 40);  // 5,120 ends of cables at switches, 128 a region
  std::vector<size_t> switches(plan.cores());
  for (const SwitchSpec& one : topology.switches) ++switches[plan.core_of(one.name)];
  CHECK(std::set<size_t>(switches.begin(), switches.end()) == std::set<size_t>{8});
  for (const LinkSpec& one : topology.links) {
    if (one.a[0] == 'h') CHECK(plan.core_of(one.a) == plan.core_of(one.b));
  }
}

TEST_CASE("region plan: there are no more regions than wanted, and one of a small topology") {
  CHECK(plan_regions(topology_of("kind = fat-tree\nk = 16\n"), 7).cores() == 7);
  CHECK(plan_regions(topology_of("kind = star\nhosts = 40\n"), 64).cores() == 1);
  CHECK(plan_regions(topology_of("kind = fat-tree\nk = 4\n"), 64).cores() == 1);
}

TEST_CASE("region plan: devices without a switch are in the first region, and names have ports") {
  Topology topology = topology_of("kind = fat-tree\nk = 16\n");
  topology.devices.push_back(nth_device("a", 2001));
  topology.devices.push_back(nth_device("b", 2002));
  topology.links.push_back({"a", "b"});
  topology.devices.back().ports.push_back(second_port(2002));
  topology.links.push_back({"b/2", "core_63"});
  const CorePlan plan = plan_regions(topology, 64);
  CHECK(plan.core_of("a") == 0);
  CHECK(plan.core_of("b") == plan.core_of("core_63"));
  CHECK(plan.core_of("b/2") == plan.core_of("core_63"));
}
