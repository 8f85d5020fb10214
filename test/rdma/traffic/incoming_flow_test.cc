// The far end of a flow whose near end may be a stranger's.
#include "rdma/traffic/incoming_flow.h"

#include "rdma/traffic/remote_join.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kSize = 12 << 20, kCount = 2;

// A far end without a near end.
struct Far {
  World world{1, default_topology()};
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  IncomingFlow flow;
  const FlowPattern pattern{7};
  bool ready = false;
  uint32_t key = 0;
  uint64_t address = 0;
  std::optional<Result<void>> ended;

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
              7,
              [this](Result<void> result) { ended = std::move(result); }},
             path_between(mapped_ipv4({10, 77, 0, 1}), mapped_ipv4({10, 9, 0, 2})), std::nullopt) {
    REQUIRE(flow.serve({4096, 0, 0, 0, {{17, 0}}}, [this](Result<EndpointInfo> end) {
      REQUIRE(end);
      CHECK(end->qps.size() == 1);
      key = end->key;
      address = end->address;
      ready = true;
    }));
  }
  // Runs until `what` holds; fails where no event is left.
  void run_until(const std::function<bool()>& what) {
    while (!what() && world.scheduler.run_one(kNever)) {
    }
    REQUIRE(what());
  }
  std::span<uint8_t> message(uint64_t index) {
    return flow.received()->bytes().subspan(index * kSize, kSize);
  }
};

}  // namespace

TEST_CASE("incoming flow: READs return the generated messages, at any offset") {
  Far far(FlowOp::kRead);
  far.run_until([&] { return far.ready; });
  CHECK(!far.flow.received());
  const MemoryTable& table = far.world.device("mb_0").memory();
  const MemoryRegion* region = table.find(far.key);
  REQUIRE(region);
  CHECK(region->address == far.address);
  CHECK(region->length == kCount * kSize);
  std::vector<uint8_t> whole(kCount * kSize);
  for (uint64_t index = 0; index < kCount; ++index) {
    far.pattern.stamp(std::span(whole).subspan(index * kSize, kSize), index);
  }
  struct : MemoryListener {
    void memory_done(uint64_t, bool) override { FAIL("it has answered"); }
  } listener;
  for (uint64_t offset : {uint64_t{0}, uint64_t{3}, uint64_t{255}, kSize - 4096, kSize - 5}) {
    for (size_t length : {1, 4, 256, 1024, 5000}) {
      std::vector<uint8_t> got(length, 0xa5);
      REQUIRE(region->memory->read(offset, got, listener, 0) == Memory::Outcome::kDone);
      CHECK(std::equal(got.begin(), got.end(), whole.begin() + static_cast<long>(offset)));
    }
  }
}

TEST_CASE("incoming flow: a flow at the far end ends if nothing comes") {
  Far far(FlowOp::kWrite);
  far.run_until([&] { return far.ready; });
  TimeNs begin = far.world.scheduler.now();
  far.run_until([&] { return far.ended.has_value(); });
  CHECK(far.ended->error().reason == "nothing has come for 120 s");
  CHECK(far.world.scheduler.now() - begin >= IncomingFlow::kIdle);
  CHECK(far.world.scheduler.now() - begin <= 2 * IncomingFlow::kIdle);
}

TEST_CASE("incoming flow: written messages are verified piece by piece") {
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
        static_cast<TimeNs>(kCount * kSize / IncomingFlow::kPiece - 1) * IncomingFlow::kPieceTime);
}
