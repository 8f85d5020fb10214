// A flow that is sprayed over 16 paths of different length, without loss: the effect of reordering
// alone on go-back-N, and on selective retransmission.
#include <cstdio>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint32_t kMtu = 1024, kMessage = 64 * 1024, kMessages = 120;
constexpr uint64_t kPaths = 16;

struct Sprayed {
  uint32_t skew;  // packets, between the shortest path and the longest
  bool selective;
  bool read;

  double goodput = 0;  // relative to a flow in order
  uint64_t resent = 0, placed = 0, timeouts = 0;

  void run() {
    World world(skew);
    for (const char* name : {"mb_0", "mb_1"}) {
      set_ops(world.device(name), true, kPaths);
      set_sr(world.device(name), selective, 64);
    }
    for (Link* link : world.fabric.links()) {
      LinkParameters parameters = link->parameters();
      parameters.delay_ns = 4 * kMicrosecond;  // going back costs about 22 packet times
      set(*link, parameters);
    }
    double packet_ns = world.link("mb_0-sw_0")
                           .serialization_ns(kMtu + wire::kIpv4Len + wire::kUdpLen + wire::kBthLen +
                                             wire::kIcrcLen);
    // Path lengths are spread evenly, in an order of their own.
    std::array<TimeNs, kPaths> delays;
    Rng rng(skew, "paths");
    for (uint64_t i = 0; i < kPaths; ++i) {
      double share = static_cast<double>(i) / (kPaths - 1);
      delays[i] = static_cast<TimeNs>(share * skew * packet_ns);
    }
    for (uint64_t i = kPaths - 1; i > 0; --i) std::swap(delays[i], delays[rng.below(i + 1)]);
    Meddler paths(world, world.link(read ? "sw_0-mb_0" : "sw_0-mb_1"), 1, {});
    paths.delay = [&](const wire::Parsed& parsed) {
      return delays[parsed.headers.udp.src_port % kPaths];
    };
    QpAttributes attributes;
    attributes.path_mtu = kMtu;
    attributes.window = 1024;
    Connection connection(world, kMessage, attributes);
    fill(bytes_of(read ? *connection.far_memory : *connection.near_memory), 3);
    for (uint64_t i = 0; i < kMessages; ++i) {
      connection.post(read ? connection.read(i, 0, kMessage) : connection.write(i, 0, kMessage));
    }
    REQUIRE(world.run_idle());
    auto done = Connection::poll(connection.near_cq);
    REQUIRE(done.size() == kMessages);
    for (uint64_t i = 0; i < kMessages; ++i) {
      REQUIRE(done[i].status == WcStatus::kSuccess);
      REQUIRE(done[i].wr_id == i);
    }
    auto near = bytes_of(*connection.near_memory), far = bytes_of(*connection.far_memory);
    REQUIRE(std::equal(near.begin(), near.end(), far.begin()));
    double ideal = packet_ns * kMessages * (kMessage / kMtu);
    goodput = ideal / static_cast<double>(world.scheduler.now());
    resent = connection.near->requester().packets_resent();
    placed = world.counters(read ? "mb_0" : "mb_1").sr_ooo_placed.get();
    timeouts = connection.near->requester().timeouts();
  }
};

}  // namespace

// 120 messages of 64 packets take 7,680 packet times, of which the first way, the last straggler
// and the last acknowledgement are below 1 %.
TEST_CASE(
    "multipath: skew costs selective retransmission nothing, and go-back-N most of its goodput") {
  std::printf("REPORT multipath %5s %6s %10s %10s %8s %8s\n", "skew", "", "go-back-N", "selective",
              "resent", "placed");
  for (bool read : {false, true}) {
    for (uint32_t skew : {2u, 4u, 8u, 16u, 32u}) {
      INFO(skew << " packets, " << (read ? "read" : "write"));
      Sprayed back{skew, false, read}, selective{skew, true, read};
      back.run();
      selective.run();
      std::printf("REPORT multipath %5u %6s %10.4f %10.4f %8lu %8lu\n", skew,
                  read ? "read" : "write", back.goodput, selective.goodput,
                  static_cast<unsigned long>(selective.resent),
                  static_cast<unsigned long>(selective.placed));
      CHECK(back.goodput < 0.3);
      CHECK(back.resent > 0);
      CHECK(selective.goodput >= 0.98);
      CHECK(selective.resent == 0);
      CHECK(selective.timeouts == 0);
      CHECK(selective.placed > 100);
    }
  }
}

TEST_CASE("multipath: skew above the reorder window is taken for loss, and the data stays right") {
  Sprayed one{32, true, false};
  World world;
  one.run();
  CHECK(one.resent == 0);
  // The same paths, but a window of 4.
  Pair pair;
  set_sr(pair.link.near_device, true, 4);
  set_sr(pair.link.far_device, true, 4);
  set_ops(pair.link.near_device, true, 16);
  Meddler paths(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  paths.delay = [](const wire::Parsed& parsed) {
    return parsed.headers.udp.src_port % 16 * 2 * kMicrosecond / 3;  // 30 packet times
  };
  REQUIRE(pair.outcome(pair.link.write(1, 0, 60000)) == WcStatus::kSuccess);
  CHECK(pair.same(0, 0, 60000));
  CHECK(pair.near().sr_retrans.get() > 0);
  CHECK(pair.far().duplicate_request.get() > 0);
}
