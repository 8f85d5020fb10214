// Shapes of [topology] with several layers, rails and parallel cables.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "core/config/config.h"

using namespace rocefs;

namespace {

Topology shape_of(const std::string& keys) {
  Result<Config> config = parse_config("[topology]\n" + keys, "f");
  INFO((config ? "" : config.error().reason));
  REQUIRE(config);
  return *config->topology;
}

// Links of a node to nodes whose names begin with `prefix`.
size_t links_of(const Topology& topology, const std::string& node, std::string_view prefix) {
  size_t count = 0;
  for (const LinkSpec& link : topology.links) {
    count += link.a == node && link.b.starts_with(prefix);
    count += link.b == node && link.a.starts_with(prefix);
  }
  return count;
}

}  // namespace

TEST_CASE("fat-tree: k=4 to 32 has k^3/4 hosts, 5k^2/4 switches of k links, and no link twice") {
  for (size_t k : {4, 6, 8, 16, 32}) {
    Topology made = shape_of(fmt::format("kind=fat-tree\nk={}\n", k));
    CHECK(made.devices.size() == k * k * k / 4);
    CHECK(made.switches.size() == k * k * 5 / 4);
    CHECK(made.links.size() == 3 * k * k * k / 4);
    std::map<std::string, size_t> links;
    std::set<std::pair<std::string, std::string>> pairs;
    for (const LinkSpec& link : made.links) {
      ++links[link.a];
      ++links[link.b];
      CHECK(pairs.insert(std::minmax(link.a, link.b)).second);
    }
    for (const SwitchSpec& one : made.switches) CHECK(links[one.name] == k);
  }
}

TEST_CASE("fat-tree: every pod reaches every core once, from the aggregation switch of its row") {
  Topology made = shape_of("kind=fat-tree\nk=6\n");
  for (unsigned core = 0; core < 9; ++core) {
    std::string name = fmt::format("core_{}", core);
    for (unsigned pod = 0; pod < 6; ++pod) {
      CHECK(links_of(made, name, fmt::format("agg_{}_{}", pod, core / 3)) == 1);
    }
  }
  CHECK(links_of(made, "edge_5_2", "agg_5_") == 3);
  CHECK(made.links.at(53).a == "h53");
  CHECK(made.links.at(53).b == "edge_5_2");
}

TEST_CASE("fat-tree: fewer hosts are spread evenly over the edge switches") {
  Topology made = shape_of("kind=fat-tree\nk=4\nhosts=12\n");
  CHECK(made.devices.size() == 12);
  CHECK(made.switches.size() == 20);
  for (unsigned edge = 0; edge < 8; ++edge) {
    size_t hosts = links_of(made, fmt::format("edge_{}_{}", edge / 2, edge % 2), "h");
    CHECK((hosts == 1 || hosts == 2));
  }
  Topology one = shape_of("kind=fat-tree\nk=4\nhosts=8\n");
  for (unsigned i = 0; i < 8; ++i)
    CHECK(one.links.at(i).b == fmt::format("edge_{}_{}", i / 2, i % 2));
}

TEST_CASE("fat-tree: each layer's cables have its rate and delay, or those of the layer below") {
  auto cable = [](const Topology& topology, std::string_view a, std::string_view b) {
    for (const LinkSpec& link : topology.links) {
      if (link.a == a && link.b == b) return link;
    }
    return LinkSpec{};
  };
  Topology made = shape_of(
      "kind=fat-tree\nk=4\nrate=100G\nagg_rate=200G\ncore_rate=400G\n"
      "delay=1us\nagg_delay=2us\n");
  CHECK(cable(made, "h0", "edge_0_0").rate_bps == 100'000'000'000);
  CHECK(cable(made, "edge_0_0", "agg_0_1").rate_bps == 200'000'000'000);
  CHECK(cable(made, "edge_0_0", "agg_0_1").delay_ns == 2 * kMicrosecond);
  CHECK(cable(made, "agg_3_1", "core_3").rate_bps == 400'000'000'000);
  CHECK(cable(made, "agg_3_1", "core_3").delay_ns == 2 * kMicrosecond);
}

TEST_CASE(
    "leaf-spine: parallel cables multiply the uplinks of a leaf and have names of their own") {
  Topology made = shape_of("kind=leaf-spine\nhosts=4\nleaves=2\nspines=2\ncables=3\n");
  CHECK(links_of(made, "leaf_0", "spine_") == 6);
  CHECK(made.links.at(4).parallel == 1);
  CHECK(made.links.at(6).parallel == 3);
  CHECK(link_name("leaf_0", "spine_0", 1) == "leaf_0-spine_0");
  CHECK(link_name("leaf_0", "spine_0", 3) == "leaf_0-spine_0.3");
}

TEST_CASE("leaf-spine: NIC r of a host with rails is at the leaf r of its group") {
  Topology made = shape_of("kind=leaf-spine\nhosts=6\nleaves=4\nspines=2\nnics=2\n");
  REQUIRE(made.devices.size() == 12);
  CHECK(made.devices.at(0).name == "h0_0");
  CHECK(made.devices.at(1).name == "h0_1");
  CHECK(made.devices.at(1).host == "h0");
  CHECK(made.links.at(1).b == "leaf_1");
  CHECK(made.links.at(5).b == "leaf_1");
  CHECK(made.links.at(6).a == "h3_0");
  CHECK(made.links.at(6).b == "leaf_2");
  CHECK(made.links.at(11).b == "leaf_3");
}
