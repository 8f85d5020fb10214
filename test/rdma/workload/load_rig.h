// Loads that a test makes of keys, and runs on a star of hosts.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "rdma/workload/load_spec.h"
#include "rdma/workload/workload.h"
#include "test/rdma/star.h"

namespace rocefs::test {

using Keys = std::vector<std::pair<std::string, std::string>>;
inline constexpr uint64_t kRate = 10'000'000'000;

inline std::vector<LoadHost> hosts(unsigned count) {
  std::vector<LoadHost> all;
  for (unsigned n = 1; n <= count; ++n) all.push_back({fmt::format("h{}", n), kRate});
  return all;
}

inline Result<Load> load_of(const Keys& keys, unsigned count = 8, uint64_t seed = 1,
                            std::optional<TimeNs> until = std::nullopt) {
  LoadSpec spec;
  spec.name = "l";
  for (const auto& [key, value] : keys) {
    if (Result<void> set = set_load_key(spec, key, value); !set) return set.error();
  }
  return make_load(spec, hosts(count), seed, "", until);
}

inline std::string why_not(const Keys& keys, unsigned count = 8) {
  Result<Load> load = load_of(keys, count);
  return load ? std::string() : load.error().reason;
}

struct Told {
  std::string from, to;
  uint64_t bytes;
  TimeNs start, end;
  bool done;
  bool operator==(const Told&) const = default;
};

// Time by which a flow ends after its arrival, while nothing else is under way: an acknowledgement,
// 86 octets with Ethernet's, on each of two cables of 1 us.
inline constexpr TimeNs kAcknowledgement = 2'138;
inline bool at_arrival(TimeNs time, const Told& flow) {
  return std::abs(flow.end - kAcknowledgement - time) <= 3;  // fractions of ns
}

// Runs loads on a star of hosts h1, h2, … to their end.
struct Run final : WorkloadListener {
  std::vector<Told> flows;
  std::vector<RoundTimes> rounds;
  size_t most_at_once = 0;

  explicit Run(const Keys& keys, unsigned count = 8, uint64_t seed = 1) {
    World world(seed, star(count, kRate));
    Result<Load> load = load_of(keys, count, seed);
    INFO((load ? "" : load.error().reason));
    REQUIRE(load);
    std::vector<Load> loads;
    loads.push_back(std::move(*load));
    Workload workload(world.fabric, std::move(loads), *this);
    workload.begin();
    while (!workload.over()) {
      REQUIRE(world.scheduler.run_one(10 * kSecond));
      most_at_once = std::max<size_t>(most_at_once, workload.started() - workload.ended());
    }
    CHECK(workload.ended() == flows.size());
    CHECK_FALSE(world.outstanding.flows > 0);
  }
  void load_flow_ended(const LoadFlow& flow) override {
    flows.push_back({flow.load.hosts[flow.what.from], flow.load.hosts[flow.what.to],
                     flow.what.bytes, flow.start, flow.end, static_cast<bool>(flow.result)});
    CHECK(flow.stats.bytes.get() == flow.what.bytes);
  }
  void load_round_ended(const Load&, const RoundTimes& round) override { rounds.push_back(round); }
};

}  // namespace rocefs::test
