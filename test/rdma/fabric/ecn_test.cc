// Marks by the length of the egress queue: p = 0 up to Kmin, Pmax (q-Kmin)/(Kmax-Kmin) up to Kmax,
// then 1.
#include <cstdio>

#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// The share of marked packets among `packets` that find, or leave, `depth` others in the queue.
double marked_share(Star& star, uint64_t depth, uint64_t packets, Ecn ecn = Ecn::kCapable0) {
  Link& egress = star.link("s-h2");
  star.pause(2, 0);
  while (star.queue(2).bytes.get() < depth * kFullPacket) star.arrive(1, 2);
  REQUIRE(star.queue(2).packets.get() == depth);
  star.pause(2, 0, false);
  uint64_t before = star.egress_counters(2).marked.get();
  // A packet arrives whenever one leaves: the depth is constant.
  uint64_t seen = egress.counters().packets.get();
  for (uint64_t sent = 0; sent < packets;) {
    while (star.queue(2).packets.get() < depth) star.arrive(1, 2, {0, Ecn::kNotCapable});
    star.arrive(1, 2, {0, ecn});
    ++sent;
    while (egress.counters().packets.get() == seen) {
      REQUIRE(star.scheduler.run_one(star.scheduler.now() + kSecond));
    }
    seen = egress.counters().packets.get();
  }
  REQUIRE(star.run_idle());
  return static_cast<double>(star.egress_counters(2).marked.get() - before) /
         static_cast<double>(packets);
}

struct Law {
  const char *kmin, *kmax, *pmax;
  uint64_t depths[5];  // in packets
};

}  // namespace

// The band is the 5 %. Where p is 1 % or more, 400,000 packets are at least 4,000 marks:
// three standard errors are 4.7 %.
TEST_CASE("ecn: the marking probability follows the formula at five depths") {
  Law laws[] = {
      {"500K", "2000K", "0.05", {120, 200, 310, 400, 490}},  // SONiC's test plan
      {"5K", "200K", "0.2", {4, 12, 25, 37, 49}},
  };
  for (const Law& law : laws) {
    for (uint64_t depth : law.depths) {
      Star star(2);
      star.knobs.set("ecn/kmax", law.kmax).set("ecn/kmin", law.kmin).set("ecn/pmax", law.pmax);
      star.knobs.set("ecn/enable", "1").set("pfc/enable", "0");
      const EcnSettings& ecn = star.hub.settings().ecn;
      auto q = static_cast<double>(depth * kFullPacket);
      double kmin = static_cast<double>(ecn.kmin), kmax = static_cast<double>(ecn.kmax);
      double p = q <= kmin ? 0 : ecn.pmax * (q - kmin) / (kmax - kmin);
      auto packets = static_cast<uint64_t>(p == 0 ? 10'000 : std::min(4000 / p + 1, 400'000.0));
      double share = marked_share(star, depth, packets);
      std::printf("REPORT ecn: Kmin %s Kmax %s q %8.0f p %.5f measured %.5f\n", law.kmin, law.kmax,
                  q, p, share);
      CHECK(share == Approx(p).epsilon(0.05));
    }
  }
}

TEST_CASE("ecn: above Kmax every packet is marked, and with Kmin equal to Kmax it is a step") {
  Star star(2);
  star.knobs.set("pfc/enable", "0").set("ecn/enable", "1");
  CHECK(marked_share(star, 50, 500) == 1);
  star.knobs.set("ecn/kmin", "200K").set("ecn/pmax", "0");
  CHECK(marked_share(star, 49, 500) == 0);
  CHECK(marked_share(star, 50, 500) == 1);
}

TEST_CASE("ecn: a packet without ECN capability is never marked") {
  Star star(2);
  star.knobs.set("pfc/enable", "0").set("ecn/enable", "1");
  CHECK(marked_share(star, 50, 100, Ecn::kNotCapable) == 0);
  CHECK(marked_share(star, 50, 100, Ecn::kCapable1) == 1);
  CHECK(marked_share(star, 50, 100, Ecn::kCongested) == 0);  // already marked
  star.knobs.set("ecn/enable", "0");
  CHECK(marked_share(star, 50, 100) == 0);
}

TEST_CASE("ecn: at enqueue the queue on arrival counts, at dequeue the queue on departure") {
  for (bool dequeue : {false, true}) {
    Star star(2);
    star.knobs.set("pfc/enable", "0").set("ecn/enable", "1").set("ecn/kmin", "20K");
    star.knobs.set("ecn/kmax", "20K").set("ecn/mark_at", dequeue ? "dequeue" : "enqueue");
    star.pause(2, 0);
    for (int i = 0; i < 10; ++i) star.arrive(1, 2, {0, Ecn::kCapable0});
    // 4 packets are below 20 KiB: the first five find no more; or the last five leave no more.
    CHECK(star.egress_counters(2).marked.get() == (dequeue ? 0 : 5));
    star.pause(2, 0, false);
    REQUIRE(star.run_idle());
    CHECK(star.egress_counters(2).marked.get() == 5);
  }
}
