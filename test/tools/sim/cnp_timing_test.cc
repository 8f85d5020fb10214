// Times and numbers of CNPs in scenarios of `rocefs sim`.
#include <catch2/catch.hpp>
#include <cstdio>

#include "tools/rocefs/sim/simulation.h"

namespace rocefs::test {
namespace {

RunResult run(const std::string& text) {
  Result<Config> config = parse_config(text, "scenario");
  INFO((config ? "" : config.error().reason));
  REQUIRE(config);
  auto built = Simulation::create(*config, nullptr, 1);
  INFO((built.index() == 1 ? std::get<1>(built).reason : ""));
  REQUIRE(built.index() == 0);
  RunResult result = std::get<0>(built)->run({});
  REQUIRE(!result.failure);
  return result;
}

// Time of h0's first CNP. From time 0 on two hosts write across the cable between two switches,
// which is as fast as each host's own.
TimeNs first_cnp(const std::string& core_delay, const std::string& knobs) {
  std::string text = fmt::format(
      "[sim]\nuntil=4ms\n[topology]\nkind=dumbbell\nhosts=4\nrate=10G\ndelay=2us\ncore_delay={}\n"
      "[flows]\nf{{0..1}} = write h{{0..1}} h{{2..3}} size=64K count=1000 window=4096\n"
      "[sample]\ninterval=2us\ncnps = class/infiniband/h0/ports/1/hw_counters/rp_cnp_handled\n"
      "[knobs]\nclass/net/enp43s0/ecn/roce_rp/enable/0 = 1\n"
      "class/net/enp172s0/ecn/roce_rp/enable/0 = 1\n{}",
      core_delay, knobs);
  for (const Sample& sample : run(text).samples) {
    if (sample.values[0].value_or(0) > 0) return sample.at;
  }
  return kNever;
}

const std::string kEcn =
    "kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1\n"
    "kernel/debug/rocefs/fabric/sw_0/ecn/kmax = 20K\n"
    "kernel/debug/rocefs/fabric/sw_0/ecn/pmax = 1\n";
const std::string kNpcc = "kernel/debug/rocefs/fabric/sw_0/ports/3/npcc/enable = 1\n";

}  // namespace

// The receivers' CNP takes over 1 ms: 500 us there and 500 us back. The switch is 2 us away; it
// sends a CNP when the queue has lasted for 20 us (a microburst), at the end of an interval of 10
// us, after a processing delay of 20 us.
TEST_CASE("npcc: with a long cable the CNP takes the delay to the switch, not to the receiver") {
  TimeNs npcc = first_cnp("500us", kNpcc), ecn = first_cnp("500us", kEcn);
  CHECK(npcc >= 40 * kMicrosecond);
  CHECK(npcc <= 70 * kMicrosecond);
  CHECK(ecn >= kMillisecond);
  CHECK(ecn <= kMillisecond + 100 * kMicrosecond);
}

// The receivers' CNP takes two or three microseconds when the other switch is 1 us away.
TEST_CASE("npcc: within a data centre NPCC is not faster than ECN") {
  TimeNs npcc = first_cnp("1us", kNpcc), ecn = first_cnp("1us", kEcn);
  CHECK(npcc >= 40 * kMicrosecond);
  CHECK(ecn <= npcc);
}

// Four paths, one of them 4 us longer, which is 12 packets at 100 Gb/s: a flow that is sprayed over
// them is never in order, and loses no packet.
TEST_CASE("CFR: spraying causes CNPs unless the threshold is above the skew") {
  auto cnps_at = [](uint32_t threshold) {
    RunResult result = run(fmt::format(
        "[topology]\nkind=leaf-spine\nhosts=4\nleaves=2\nspines=4\nrate=100G\n"
        "[flows]\nf = write h0 h2 size=64K count=200 window=1024\n"
        "[sample]\ninterval=100us\n"
        "cnps = class/infiniband/h2/ports/1/hw_counters/np_cnp_sent_ooo\n"
        "[knobs]\nclass/infiniband/h0/ops/enable = 1\n"
        "class/infiniband/h{{0..3}}/sr/enable = 1\nclass/infiniband/h{{0..3}}/cfr/enable = 1\n"
        "class/infiniband/h2/cfr/ooo_threshold = {}\n"
        "kernel/debug/rocefs/links/leaf_0-spine_1/delay = 5us\n",
        threshold));
    CHECK(result.flows.at(0).done());
    CHECK(result.flows.at(0).number("retransmitted") == 0);
    return result.samples.back().values.at(0).value_or(-1);
  };
  double literal = cnps_at(1), tolerant = cnps_at(64);
  std::printf("REPORT CFR and spraying: %.0f CNPs at ooo_threshold 1, %.0f at 64\n", literal,
              tolerant);
  CHECK(literal >= 10);  // a millisecond, one each 50 us at most
  CHECK(tolerant == 0);
}

}  // namespace rocefs::test
