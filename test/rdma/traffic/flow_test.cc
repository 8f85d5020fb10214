// Flows between two devices of a mount: verification, and verify=off.
#include "rdma/traffic/flow.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

struct Outcome {
  uint64_t trace, bytes, received, retransmitted, ended_ns, mismatched;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const std::string& line) {
  World world;
  set(world.link("mb_0-sw_0"), lossy(world.link("mb_0-sw_0").parameters(), 0.02));
  auto stats = std::make_shared<FlowStats>();
  Flow flow(world.fabric, *parse_flow(line), {}, stats, nullptr,
            [](Result<void> result) { CHECK(result); });
  REQUIRE(flow.start());
  REQUIRE(world.run_idle());
  return {world.fabric.trace().value(), stats->bytes.get(),    stats->received.get(),
          stats->retransmitted.get(),   stats->ended_ns.get(), stats->mismatched.get()};
}

}  // namespace

TEST_CASE("flow: a run without verification is the same run") {
  for (const char* op : {"write", "send", "read", "atomic-write", "uc", "ud"}) {
    INFO(op);
    bool eight = op == std::string_view("atomic-write");
    std::string line =
        fmt::format("f {} mb_0 mb_1 qps=2 size={} count=300 timeout=8", op, eight ? 8 : 4000);
    Outcome looked_at = run(line), unseen = run(line + " verify=off");
    CHECK(looked_at == unseen);
    CHECK(unseen.bytes > 0);
    CHECK(unseen.mismatched == 0);
  }
}

TEST_CASE("flow: packets are counted before their message is complete") {
  World world;
  auto stats = std::make_shared<FlowStats>();
  Flow flow(world.fabric, *parse_flow("f write mb_0 mb_1 qps=2 size=1M count=2"), {}, stats,
            nullptr, [](Result<void> result) { CHECK(result); });
  REQUIRE(flow.start());
  world.scheduler.run_until(100 * kMicrosecond);
  CHECK(stats->messages.get() == 0);
  flow.account();
  const uint64_t sent = stats->packets.get();
  CHECK(sent > 20);
  flow.account();
  CHECK(stats->packets.get() == sent);
  REQUIRE(world.run_idle());
  CHECK(stats->packets.get() == 2 * (1 << 20) / 4096);
}

TEST_CASE("flow: messages of a packet fill the window") {
  auto depth = [](const char* rest, FlowEnds ends = FlowEnds::kOneMount) {
    Result<FlowPlan> plan =
        FlowPlan::of(*parse_flow(fmt::format("f write a b {}", rest)), std::nullopt, ends);
    REQUIRE(plan);
    return plan->depth;
  };
  CHECK(depth("size=1024 count=20000 window=1024") == 1024);
  CHECK(depth("size=1024 count=20000 window=10") == 64);
  CHECK(depth("size=8192 count=20000 window=1024") == 512);
  CHECK(depth("size=1M count=20000 window=1024") == 64);
  CHECK(depth("size=1024 count=500 window=1024") == 500);
  CHECK(depth("size=8 count=100000000 window=4194304") == 16384);
  CHECK(depth("size=8 count=100000000 window=4194304 qps=16384") == 64);
  CHECK(depth("size=1M count=20000 window=4194304") == 256);  // a quarter of a flow's memory
  CHECK(depth("size=1024 count=20000 window=1024", FlowEnds::kTwoMounts) == 64);
}

TEST_CASE("flow: unverified data is zero on the wire, with a valid ICRC") {
  World world;
  struct Sink final : CaptureSink {
    uint64_t packets = 0, bytes = 0, nonzero = 0;
    void captured(const Port&, const Packet& packet, TimeNs) override {
      ++packets;
      for (uint16_t i = 0; i < packet.payload.length; ++i) {
        nonzero += packet.frame->bytes[i] != 0;
      }
      bytes += packet.payload.length;
    }
  } sink;
  world.fabric.set_capture(&sink);
  auto stats = std::make_shared<FlowStats>();
  Flow flow(world.fabric, *parse_flow("f write mb_0 mb_1 size=10000 count=5 verify=off"), {}, stats,
            nullptr, [](Result<void> result) { CHECK(result); });
  REQUIRE(flow.start());
  REQUIRE(world.run_idle());
  CHECK(sink.bytes == 50'000);
  CHECK(sink.nonzero == 0);
  CHECK(stats->retransmitted.get() == 0);
  CHECK(world.counters("mb_1").rx_icrc_encapsulated.get() == 0);
}

TEST_CASE("flow: data that changes before its request completes is counted") {
  for (const std::string op : {"write", "send", "read", "atomic", "uc", "ud"}) {
    INFO(op);
    World world;
    auto stats = std::make_shared<FlowStats>();
    Flow flow(world.fabric, *parse_flow("f " + op + " mb_0 mb_1 count=5"), {}, stats, nullptr,
              [](Result<void> result) { CHECK(result); });
    REQUIRE(flow.start());
    while (world.outstanding.any()) {
      REQUIRE(world.scheduler.run_one(kNever));
      std::ranges::fill(flow.received()->bytes(), 0x5a);
    }
    CHECK(stats->messages.get() == 5);
    CHECK(stats->mismatched.get() == (op == "atomic" ? 1 : 5));
  }
}

TEST_CASE("flow: verify=off is accepted only for generated data") {
  CHECK_FALSE(parse_flow("f write mb_0 mb_1 verify=off")->verify);
  CHECK(parse_flow("f write mb_0 mb_1 verify=on")->verify);
  for (const char* line : {"f write mb_0 mb_1 verify=maybe", "f atomic mb_0 mb_1 verify=off",
                           "f write mb_0 mb_1 file=/x verify=off"}) {
    INFO(line);
    Result<FlowSpec> spec = parse_flow(line);
    REQUIRE_FALSE(spec);
    CHECK(spec.error().code == EINVAL);
  }
}

TEST_CASE("flow: it has as many queue pairs as a device, and no more") {
  World world;
  auto stats = std::make_shared<FlowStats>();
  auto flow_of = [&](const char* line) {
    return Flow(world.fabric, *parse_flow(line), {}, stats, nullptr,
                [](Result<void> result) { CHECK(result); });
  };
  {
    Flow all = flow_of("f write mb_0 mb_1 qps=16384 count=16384 size=1 verify=off");
    REQUIRE(all.start());
    Flow more = flow_of("g write mb_1 mb_0");
    Result<void> started = more.start();
    REQUIRE_FALSE(started);
    CHECK(started.error().code == ENOMEM);
    CHECK(started.error().reason == "mb_1: all of its 16384 queue pairs are in use");
    REQUIRE(world.run_idle());
    CHECK(stats->messages.get() == 16384);
  }
  Result<FlowSpec> spec = parse_flow("f write mb_0 mb_1 qps=16385");
  REQUIRE_FALSE(spec);
  CHECK(spec.error().reason == "qps=16385 is outside 1 to 16384");
}

TEST_CASE("flow: a message has up to 1 GiB, and room for the header that a datagram comes with") {
  auto plan_of = [](const char* line) {
    return FlowPlan::of(*parse_flow(line), std::nullopt, FlowEnds::kOneMount);
  };
  Result<FlowPlan> plan = plan_of("f write mb_0 mb_1 size=1G");
  REQUIRE(plan);
  CHECK(plan->bytes() == 1 << 30);
  CHECK(plan->receive_bytes() == 1 << 30);
  CHECK(plan_of("f uc mb_0 mb_1 size=1G"));
  for (const char* line : {"f write mb_0 mb_1 size=1G qps=2", "f ud mb_0 mb_1 size=1G"}) {
    INFO(line);
    Result<FlowPlan> refused = plan_of(line);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == EINVAL);
  }
}

TEST_CASE("flow: one to another mount has fewer queue pairs") {
  CHECK(parse_flow("f write mb_0 10.9.0.2 qps=4096"));
  Result<FlowSpec> spec = parse_flow("f write mb_0 10.9.0.2 qps=4097");
  REQUIRE_FALSE(spec);
  CHECK(spec.error().code == EINVAL);
  CHECK(spec.error().reason == "qps=4097: a flow to an address has up to 4096");
}
