// What strangers may ask of a flow's far end, piece by piece.
#include "rdma/half_flow.h"

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kSize = 12 << 20, kCount = 2;

// The far end of a flow whose near end is nobody.
struct Far {
  World world{1, default_topology()};
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  HalfFlow flow;
  const FlowPattern pattern{7};
  bool ready = false;

  static FlowSpec spec(FlowOp op) {
    FlowSpec spec;
    spec.name = "f";
    spec.op = op;
    spec.from = "mb_0";
    spec.qps = 1;
    spec.size = kSize;
    spec.count = kCount;
    return spec;
  }
  explicit Far(FlowOp op)
      : flow({world.fabric,
              spec(op),
              {0, "test"},
              stats,
              nullptr,
              std::nullopt,
              7,
              false,
              mapped_ipv4({10, 77, 0, 1}),
              mapped_ipv4({10, 9, 0, 2}),
              {},
              {}}) {
    REQUIRE(flow.serve({4096, 0, 0, 0, {{17, 0}}}, [this](Result<FlowEnd> end) {
      REQUIRE(end);
      CHECK(end->qps.size() == 1);
      ready = true;
    }));
  }
  // Until it is what is waited for, or nothing happens any more.
  void run_until(const std::function<bool()>& what) {
    while (!what() && world.scheduler.run_one(kNever)) {
    }
    REQUIRE(what());
  }
  std::span<uint8_t> message(uint64_t index) {
    return flow.received()->bytes().subspan(index * kSize, kSize);
  }
  uint64_t stamped_pieces() {
    uint64_t pieces = 0;
    for (uint64_t at = 0; at < kCount * kSize; at += FlowPattern::kEvery) {
      pieces += pattern.stamped(message(at / kSize).subspan(at % kSize, 8), at / kSize, at % kSize);
    }
    return pieces;
  }
};

}  // namespace

TEST_CASE("half flow: what a stranger wants to read is made up piece by piece") {
  Far far(FlowOp::kRead);
  TimeNs begin = far.world.scheduler.now();
  REQUIRE(far.world.scheduler.run_one(kNever));
  uint64_t first = far.stamped_pieces();
  CHECK(first > 0);
  CHECK(first <= HalfFlow::kPiece / FlowPattern::kEvery);
  CHECK(!far.ready);
  far.run_until([&] { return far.ready; });
  CHECK(far.stamped_pieces() == kCount * kSize / FlowPattern::kEvery);
  CHECK(far.world.scheduler.now() - begin >=
        static_cast<TimeNs>(kCount * kSize / HalfFlow::kPiece - 1) * HalfFlow::kPieceTime);
}

TEST_CASE("half flow: what a stranger has written is looked at piece by piece") {
  Far far(FlowOp::kWrite);
  far.run_until([&] { return far.ready; });
  far.pattern.stamp(far.message(0), 0);
  far.pattern.stamp(far.message(1), 1);
  far.message(1)[kSize - FlowPattern::kEvery] ^= 1;
  std::optional<FlowReport> report;
  far.flow.finish([&](FlowReport told) { report = told; });
  TimeNs begin = far.world.scheduler.now();
  REQUIRE(far.world.scheduler.run_one(kNever));
  CHECK(!report);
  far.run_until([&] { return report.has_value(); });
  CHECK(report->received == kCount);
  CHECK(report->mismatched == 1);
  CHECK(far.world.scheduler.now() - begin >=
        static_cast<TimeNs>(kCount * kSize / HalfFlow::kPiece - 1) * HalfFlow::kPieceTime);
}
