// IdealTimes: a flow that is alone takes its ideal time, and never less.
#include "tools/rocefs/sim/ideal.h"

#include <catch2/catch.hpp>

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

// A host at `near` behind a switch, and one at `far`; each flow begins when the others are over.
std::string two_hosts(const std::string& near, const std::string& far, const std::string& delay,
                      const std::vector<std::string>& flows) {
  std::string text = fmt::format(
      "[device a]\n[device b]\n[switch s]\n[link a s]\nrate={}\ndelay={}\n[link s b]\nrate={}\n"
      "delay={}\n[flows]\n",
      near, delay, far, delay);
  for (size_t i = 0; i < flows.size(); ++i) {
    text += fmt::format("f{} = {} start={}ms\n", i, flows[i], 20 * i);
  }
  return text;
}

}  // namespace

// A packet on a link may take a nanosecond more, by what is left of the one before.
TEST_CASE("ideal time: a flow alone on one path takes it, and is not faster") {
  std::vector<std::string> flows;
  for (const char* size : {"1", "400", "4096", "4097", "4496", "8192", "65537"}) {
    for (const char* op : {"write", "send", "read", "uc"}) {
      flows.push_back(fmt::format("{} a b size={}", op, size));
      flows.push_back(fmt::format("{} b a size={}", op, size));
    }
    flows.push_back(fmt::format("write a b size={} mtu=256 gid=0", size));
  }
  for (const char* rest : {"ud a b size=1000", "ud b a size=4096", "atomic a b", "atomic-write b a",
                           "write a b size=4496 qps=3 count=3", "write a b size=1M"}) {
    flows.emplace_back(rest);
  }
  for (const auto& [near, far] : {std::pair("10G", "100G"), {"100G", "10G"}, {"40G", "40G"}}) {
    for (const char* delay : {"0ns", "1us"}) {
      for (const FlowResult& flow : run(two_hosts(near, far, delay, flows)).flows) {
        INFO(near << " " << far << " " << delay << " " << flow.spec.name << ": "
                  << flows[std::stoul(flow.spec.name.substr(1))] << ": " << flow.fct_ns() << " "
                  << flow.ideal_ns);
        CHECK(flow.done());
        CHECK(flow.fct_ns() >= flow.ideal_ns);
        CHECK(flow.fct_ns() <= flow.ideal_ns * 1.001 + 8);
      }
    }
  }
}

TEST_CASE("ideal time: many messages are as fast, and no slower than their wire") {
  std::vector<std::string> flows;
  for (const char* op : {"write", "send", "read"}) {
    for (const char* rest : {"size=4496 count=50", "size=8192 count=30", "size=400 count=200",
                             "size=64K count=20", "size=4496 count=50 qps=4"}) {
      flows.push_back(fmt::format("{} a b window=4096 {}", op, rest));
    }
  }
  for (const auto& [near, far] : {std::pair("10G", "100G"), {"100G", "10G"}, {"40G", "40G"}}) {
    for (const FlowResult& flow : run(two_hosts(near, far, "0ns", flows)).flows) {
      INFO(near << " " << far << " " << flow.spec.name << ": "
                << flows[std::stoul(flow.spec.name.substr(1))] << ": " << flow.fct_ns() << " "
                << flow.ideal_ns);
      CHECK(flow.done());
      CHECK(flow.fct_ns() >= flow.ideal_ns);
    }
  }
}

TEST_CASE("ideal time: a READ or atomic behind sixteen others waits for a response") {
  std::vector<std::string> flows;
  for (const char* rest :
       {"count=16", "count=17", "count=500", "count=66 qps=2", "count=66 qps=3"}) {
    flows.push_back(fmt::format("atomic a b {}", rest));
    for (const char* size : {"64", "4096", "4497", "64K"}) {
      flows.push_back(fmt::format("read a b size={} {}", size, rest));
    }
  }
  for (const char* delay : {"0ns", "5us"}) {
    for (const FlowResult& flow : run(two_hosts("100G", "40G", delay, flows)).flows) {
      INFO(delay << " " << flows[std::stoul(flow.spec.name.substr(1))] << ": " << flow.fct_ns()
                 << " " << flow.ideal_ns);
      CHECK(flow.done());
      CHECK(flow.fct_ns() >= flow.ideal_ns);
      // Several queue pairs delay each other.
      if (flow.spec.qps == 1) CHECK(flow.fct_ns() <= flow.ideal_ns * 1.03 + 8);
    }
  }
}

namespace {

// Two spines of 25 Gb/s each between hosts of 100 Gb/s.
std::string two_spines(const std::string& flow, const std::string& knobs) {
  return "[topology]\nkind=leaf-spine\nhosts=4\nleaves=2\nspines=2\nrate=100G\ncore_rate=25G\n"
         "delay=1us\n[flows]\nf = " +
         flow + "\n[knobs]\n" + knobs;
}

double gbps(const FlowResult& flow) {
  return static_cast<double>(flow.spec.size * flow.spec.count) * 8 / flow.ideal_ns;
}

}  // namespace

TEST_CASE("ideal time: several queue pairs have several paths") {
  FlowResult one = run(two_spines("write h0 h2 size=10M", "")).flows[0];
  CHECK(one.slowdown() == Approx(1).epsilon(0.001));
  CHECK(gbps(one) == Approx(24.4).epsilon(0.01));
  FlowResult many = run(two_spines("write h0 h2 size=1M count=64 qps=16", "")).flows[0];
  CHECK(many.slowdown() >= 1);
  CHECK(gbps(many) == Approx(48.8).epsilon(0.01));
  FlowResult few = run(two_spines("write h0 h2 size=10M count=1 qps=16", "")).flows[0];
  CHECK(few.slowdown() == Approx(1).epsilon(0.001));
  FlowResult near = run(two_spines("write h0 h1 size=1M count=64 qps=16", "")).flows[0];
  CHECK(near.slowdown() == Approx(1).epsilon(0.001));
  CHECK(gbps(near) == Approx(97.5).epsilon(0.01));
}

TEST_CASE("ideal time: a sender that sprays has several paths, for READs the far end") {
  const std::string sr = "class/infiniband/*/sr/enable=1\n";
  const std::string spray = sr + "class/infiniband/h0/ops/enable=1\n";
  for (const auto& [op, rate] : {std::pair("write", 48.8), {"read", 24.4}}) {
    INFO(op);
    FlowResult flow = run(two_spines(fmt::format("{} h0 h2 size=10M", op), spray)).flows[0];
    CHECK(flow.slowdown() >= 1);
    CHECK(gbps(flow) == Approx(rate).epsilon(0.01));
  }
}

// Two queue pairs use two of four spines at best, and those are the fast ones.
TEST_CASE("ideal time: a flow has no more paths than queue pairs, and the fastest") {
  const std::string text =
      "[topology]\nkind=leaf-spine\nhosts=4\nleaves=2\nspines=4\nrate=100G\ncore_rate=10G\n"
      "[flows]\none = write h0 h2 size=10M\ntwo = write h0 h2 size=10M count=2 qps=2 start=20ms\n"
      "[knobs]\nkernel/debug/rocefs/links/leaf_0-spine_1/rate=40G\n"
      "kernel/debug/rocefs/links/spine_1-leaf_1/rate=40G\n";
  std::vector<FlowResult> flows = run(text).flows;
  CHECK(gbps(flows[0]) == Approx(39).epsilon(0.01));
  CHECK(gbps(flows[1]) == Approx(48.8).epsilon(0.01));
  for (const FlowResult& flow : flows) CHECK(flow.slowdown() >= 1);
}

}  // namespace rocefs::test
