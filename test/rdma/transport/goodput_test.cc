// Goodput under random loss. Go-back-N, against (1-p) / (1-p + pD + p^2 R): a lost packet costs the
// D packet times until it is sent again, a lost retransmission the R until the time-out. Selective
// retransmission, against 1-p.
#include <catch2/catch.hpp>
#include <cstdio>

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Long messages over one switch, loss on one link in the direction of the data.
struct LossyStream {
  double loss;
  TimeNs delay;     // delay of each of the two links on the way
  uint8_t timeout;  // exponent
  bool selective = false;

  double measured = 0, predicted = 0, d = 0, r = 0, share = 0;
  uint64_t losses = 0, resent = 0, timeouts = 0;

  void run() {
    constexpr uint32_t kMtu = 1024, kMessage = 64 * 1024;
    World world(17);
    for (Link* link : world.fabric.links()) {
      LinkParameters parameters = link->parameters();
      parameters.delay_ns = delay;
      parameters.rate_bps = 10'000'000'000;
      set(*link, parameters);
    }
    Link& egress = world.link("mb_0-sw_0");
    // Data packets of this many octets follow one another at this distance.
    double packet_ns = egress.serialization_ns(kMtu + 20 + 8 + 12 + 4);
    QpAttributes attributes;
    attributes.path_mtu = kMtu;
    attributes.timeout = timeout;
    attributes.window = 1024;  // larger than D: the link never waits for an acknowledgement
    for (const char* name : {"mb_0", "mb_1"}) set_sr(world.device(name), selective);
    Connection connection(world, kMessage, attributes);
    uint64_t outstanding = 0, done = 0;
    connection.near_cq.set_listener([&] {
      for (const Completion& completion : Connection::poll(connection.near_cq)) {
        REQUIRE(completion.status == WcStatus::kSuccess);
        --outstanding;
        ++done;
      }
    });

    // D, from the start of a lost packet to the start of its retransmission, by one deliberate
    // loss.
    d = measure_resend(world, connection, packet_ns, outstanding);
    r = static_cast<double>(TimeNs{4096} << timeout) / packet_ns;

    set(egress, lossy(egress.parameters(), loss));
    TimeNs start = world.scheduler.now();
    uint64_t resent_before = connection.near->requester().packets_resent();
    uint64_t first = done, lost_before = egress.losses().lost.get();
    const uint64_t wanted = selective ? 4'000 : 20'000;
    while (egress.losses().lost.get() - lost_before < wanted) {
      keep_busy(connection, outstanding);
      step(world);
    }
    losses = egress.losses().lost.get() - lost_before;
    double elapsed = static_cast<double>(world.scheduler.now() - start);
    double packets = static_cast<double>(done - first) * (kMessage / kMtu);
    measured = packets * packet_ns / elapsed;
    resent = connection.near->requester().packets_resent() - resent_before;
    timeouts = connection.near->requester().timeouts();
    if (selective) {
      predicted = 1 - loss;
      return;
    }
    double denominator = 1 - loss + loss * d + loss * loss * r;
    predicted = (1 - loss) / denominator;
    share = loss * loss * r / denominator;
  }

 private:
  // An assertion of Catch's own for each event would cost more than the event.
  static void step(World& world) {
    if (!world.scheduler.run_one(kNever - 1)) FAIL("nothing is left to happen");
  }

  static void keep_busy(Connection& connection, uint64_t& outstanding) {
    constexpr uint64_t kQueued = 64;  // 4096 packets: always more than the window
    for (; outstanding < kQueued; ++outstanding) {
      connection.post(connection.write(0, 0, 64 * 1024));
    }
  }

  // Measures one loss in a running stream.
  static double measure_resend(World& world, Connection& connection, double packet_ns,
                               uint64_t& outstanding) {
    Link& egress = world.link("mb_0-sw_0");
    LinkSink& far = egress.sink();
    struct Tap final : LinkSink {
      World& world;
      LinkSink& far;
      int until_drop = 3000;
      uint32_t psn = 0;
      TimeNs dropped = 0, resent = 0;
      Tap(World& w, LinkSink& f) : world(w), far(f) {}
      void receive(Packet* arriving, TimeNs now) override {
        PacketPtr packet(arriving);
        wire::Parsed parsed;
        if (wire::parse_headers(packet->header_bytes(), packet->payload.length, parsed) !=
            wire::ParseError::kNone) {
          FAIL("a malformed packet");
        }
        if (--until_drop == 0) {
          dropped = now;
          psn = parsed.headers.bth.psn;
          return;
        }
        if (dropped && !resent && parsed.headers.bth.psn == psn) resent = now;
        far.receive(packet.release(), now);
      }
    } tap(world, far);
    egress.set_sink(tap);
    while (!tap.resent) {
      keep_busy(connection, outstanding);
      step(world);
    }
    egress.set_sink(far);
    return static_cast<double>(tap.resent - tap.dropped) / packet_ns;
  }
};

}  // namespace

// Tolerance of 3 %: 20,000 losses leave a standard error below 1 %, and the formula leaves out that
// the packet behind a lost one may be lost too (p of D).
TEST_CASE("go-back-N: goodput under loss follows the formula") {
  LossyStream runs[] = {{0.005, 4 * kMicrosecond, 8}, {0.005, 18 * kMicrosecond, 9},
                        {0.01, 10 * kMicrosecond, 7}, {0.01, 18 * kMicrosecond, 8},
                        {0.02, 18 * kMicrosecond, 7}, {0.05, 4 * kMicrosecond, 4}};
  std::printf("REPORT go-back-N %8s %8s %8s %8s %10s %10s %8s\n", "p", "D", "R", "losses",
              "measured", "formula", "ratio");
  for (LossyStream& run : runs) {
    run.run();
    double ratio = run.measured / run.predicted;
    std::printf("REPORT go-back-N %8.3f %8.1f %8.0f %8lu %10.4f %10.4f %8.4f\n", run.loss, run.d,
                run.r, static_cast<unsigned long>(run.losses), run.measured, run.predicted, ratio);
    CHECK(run.losses >= 20'000);
    CHECK(run.d <= 100);
    CHECK(run.share <= 0.1);
    CHECK(ratio == Approx(1).margin(0.03));
  }
}

// Tolerance of 2 %: 4,000 losses leave a standard error of 1.6 % of p. The window of 1024 packets
// outlasts a hole: 64 packets until it is lost by the reorder window, D until it is filled, and
// twice that if the retransmission is lost, too.
TEST_CASE("selective: goodput under loss is 1-p, with one retransmission for each loss") {
  LossyStream runs[] = {{0.001, 4 * kMicrosecond, 10, true},
                        {0.005, 18 * kMicrosecond, 10, true},
                        {0.01, 4 * kMicrosecond, 10, true},
                        {0.01, 18 * kMicrosecond, 10, true}};
  std::printf("REPORT selective %8s %8s %8s %8s %8s %10s %10s\n", "p", "D", "losses", "resent",
              "timeouts", "measured", "1-p");
  for (LossyStream& run : runs) {
    run.run();
    std::printf("REPORT selective %8.3f %8.1f %8lu %8lu %8lu %10.4f %10.4f\n", run.loss, run.d,
                static_cast<unsigned long>(run.losses), static_cast<unsigned long>(run.resent),
                static_cast<unsigned long>(run.timeouts), run.measured, run.predicted);
    CHECK(run.measured / run.predicted == Approx(1).margin(0.02));
    CHECK(run.timeouts == 0);
    // The losses of the last moments are still to be mended.
    CHECK(run.resent <= run.losses);
    CHECK(run.resent + 64 >= run.losses);
  }
}
