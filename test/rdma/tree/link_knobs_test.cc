// Knobs of links: made when they are first wanted, by either thread.
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "core/config/topology_shapes.h"
#include "rdma/tree/files.h"

using namespace rocefs;

TEST_CASE("link knobs: two threads that want the knobs of a link at once get the same ones") {
  PollLoop loop;
  auto engine = std::move(*Engine::create({ClockMode::kVirtual, 1, 0, nullptr}, loop));
  Shape shape;
  shape.kind = "fat-tree";
  shape.k = 8;
  Fabric fabric(*build_shape(shape), 1, engine->scheduler(), engine->outstanding());
  LinkKnobs knobs(fabric, *engine);
  const size_t count = fabric.links().size();
  std::vector<std::vector<std::shared_ptr<KnobSet>>> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : seen) {
      threads.emplace_back([&] {
        for (size_t i = 0; i < count; ++i) mine.push_back(knobs.at(*fabric.links()[i]));
      });
    }
  }
  for (const auto& mine : seen) CHECK(mine == seen.front());
  CHECK(std::set(seen[0].begin(), seen[0].end()).size() == count);
}

TEST_CASE("link knobs: they begin with the link's initial parameters, whatever they are now") {
  PollLoop loop;
  auto engine = std::move(*Engine::create({ClockMode::kVirtual, 1, 0, nullptr}, loop));
  Topology topology = default_topology();
  topology.links[1].rate_bps = 25'000'000'000;
  Fabric fabric(topology, 1, engine->scheduler(), engine->outstanding());
  LinkKnobs knobs(fabric, *engine);
  Link& link = *fabric.links()[3];
  LinkParameters now = link.parameters();
  now.rate_bps = 1'000'000;
  link.apply(Link::values_of(now));
  CHECK(std::get<uint64_t>(knobs.at(link)->value(knob_index(kLinkKnobs, "rate"))) ==
        25'000'000'000);
}
