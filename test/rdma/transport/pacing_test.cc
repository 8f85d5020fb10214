// Pacing of windows: the times at which packets leave.
#include "rdma/cc/pacing.h"

#include <catch2/catch.hpp>

#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kDelay = 50 * kMicrosecond;
constexpr uint32_t kMtu = 4096, kPackets = 29;
// A packet of one WRITE on the wire: RETH and headers, and what Ethernet adds, at 10 Gb/s.
constexpr double kWire = (kMtu + 20 + 8 + 12 + 16 + 4 + kEthernetOverhead) * 0.8;

void set_pacing(Device& device, bool enable) {
  device.pacing().apply(std::vector<KnobValue>{uint64_t{enable}});
}

// WRITEs of one full packet each, over four links of kDelay: two there, two back.
struct PacedFlow {
  World world;
  Device& near = world.device("mb_0");
  WindowTaker owner;
  std::vector<TimeNs> left;  // times at which data packets arrive at the switch
  Meddler watch{world, world.link("mb_0-sw_0"), 1, {}};
  std::unique_ptr<RunningFlow> stream;

  explicit PacedFlow(bool paced) {
    for (const char* name : {"mb_0-sw_0", "sw_0-mb_0", "mb_1-sw_0", "sw_0-mb_1"}) {
      LinkParameters parameters = world.link(name).parameters();
      parameters.delay_ns = kDelay;
      set(world.link(name), parameters);
    }
    set_pacing(near, paced);
    watch.script = [this](const wire::Parsed& parsed, Packet&) {
      if (is_data(parsed)) left.push_back(world.scheduler.now());
      return false;
    };
  }
  void start() {
    FlowSpec spec = RunningFlow::spec_of("stream", FlowOp::kWrite, "mb_0", "mb_1");
    spec.size = kMtu;
    stream = std::make_unique<RunningFlow>(world, spec);
  }
  void set_window(uint32_t octets) { owner.set_window(near, kFirstQp, octets); }
  // Distances between the packets of the next `duration`.
  std::vector<TimeNs> gaps_in(TimeNs duration) {
    left.clear();
    world.scheduler.run_until(world.scheduler.now() + duration);
    std::vector<TimeNs> gaps;
    for (size_t i = 1; i < left.size(); ++i) gaps.push_back(left[i] - left[i - 1]);
    return gaps;
  }
};

// Round trip of one packet, from the start of its transmission: two serialisations there, two of
// the acknowledgement (IPv4, UDP, BTH, AETH, ICRC) back, and the delays.
constexpr double kRoundTrip =
    2 * kWire + 2 * (20 + 8 + 12 + 4 + 4 + kEthernetOverhead) * 0.8 + 4.0 * kDelay;

}  // namespace

TEST_CASE("pacing: a window leaves as a burst without it, and evenly over a round trip with it") {
  for (bool paced : {false, true}) {
    INFO((paced ? "paced" : "not paced"));
    PacedFlow run(paced);
    REQUIRE(run.owner.take(run.near));
    run.start();
    run.set_window(kPackets * kMtu);
    run.world.scheduler.run_until(10 * kMillisecond);
    std::vector<TimeNs> gaps = run.gaps_in(10 * kMillisecond);
    REQUIRE(gaps.size() > 9 * kMillisecond / kRoundTrip * kPackets);
    size_t back_to_back = 0;
    for (TimeNs gap : gaps) back_to_back += static_cast<double>(gap) < 1.3 * kWire;
    if (!paced) {
      CHECK(back_to_back > gaps.size() * 3 / 4);
      continue;
    }
    // Whole nanoseconds of both times, rounded when the packet may leave and once more by the link,
    // and one of the acknowledgement that opens the window.
    for (TimeNs gap : gaps)
      CHECK(static_cast<double>(gap) == Approx(kRoundTrip / kPackets).margin(3));
    CHECK(static_cast<double>(run.stream->rate()) ==
          Approx(kPackets * kMtu * 8e9 / kRoundTrip).epsilon(1e-4));
  }
}

TEST_CASE("pacing: nothing is paced before the first round trip is measured") {
  PacedFlow run(true);
  REQUIRE(run.owner.take(run.near));
  run.start();
  run.set_window(kPackets * kMtu);
  std::vector<TimeNs> gaps = run.gaps_in(3 * kDelay);
  REQUIRE(gaps.size() == kPackets - 1);
  for (TimeNs gap : gaps) CHECK(static_cast<double>(gap) == Approx(kWire).margin(1));
}

TEST_CASE("pacing: a window below a packet makes a rate below one packet in a round trip") {
  PacedFlow run(true);
  REQUIRE(run.owner.take(run.near));
  run.start();
  run.set_window(kMtu / 4);
  run.world.scheduler.run_until(10 * kMillisecond);
  std::vector<TimeNs> gaps = run.gaps_in(20 * kMillisecond);
  REQUIRE(gaps.size() > 20);
  for (TimeNs gap : gaps) CHECK(static_cast<double>(gap) == Approx(4 * kRoundTrip).margin(8));

  // A window that opens shortens the wait: at the next look, 50 us later at most.
  run.set_window(kPackets * kMtu);
  CHECK(run.gaps_in(300 * kMicrosecond).size() > 20);
}

TEST_CASE("pacing: CFR's window is paced, too") {
  for (bool paced : {false, true}) {
    INFO((paced ? "paced" : "not paced"));
    PacedFlow run(paced);
    set_cfr(run.near, {{"enable", "1"}});
    run.start();
    run.world.scheduler.run_until(kMillisecond);
    // The window goes from some 30 packets to some 5. It changes between two packets, and both its
    // values are looked at.
    size_t too_early = 0, looked_at = 0;
    for (int cnp = 0; cnp < 25; ++cnp) {
      uint64_t most = run.stream->window();
      send_cnp(run.world, "mb_0", "mb_1");
      std::vector<TimeNs> gaps = run.gaps_in(150 * kMicrosecond);
      most = std::max(most, run.stream->window());
      if (cnp < 10) continue;  // the first round trip, and what was in flight before the cut
      for (TimeNs gap : gaps) {
        ++looked_at;
        // The slowest that may be: the largest window of the interval, the least round trip.
        too_early += static_cast<double>(gap) < kRoundTrip * kMtu / static_cast<double>(most) - 2;
      }
    }
    REQUIRE(looked_at > 50);
    if (paced) CHECK(too_early == 0);
    if (!paced) CHECK(too_early > looked_at / 4);
    CHECK(run.stream->stats->mismatched.get() == 0);
  }
}

TEST_CASE("pacing: turning it off ends the waits at once") {
  PacedFlow run(true);
  REQUIRE(run.owner.take(run.near));
  run.start();
  run.set_window(1);
  run.world.scheduler.run_until(10 * kMillisecond);
  CHECK(run.gaps_in(10 * kMillisecond).empty());  // a packet in 4,096 round trips
  set_pacing(run.near, false);
  std::vector<TimeNs> gaps = run.gaps_in(10 * kMillisecond);
  REQUIRE(gaps.size() > 40);  // one packet may always be in flight
  for (TimeNs gap : gaps) CHECK(static_cast<double>(gap) == Approx(kRoundTrip).margin(2));
  CHECK(run.stream->rate() == 10'000'000'000);
}
