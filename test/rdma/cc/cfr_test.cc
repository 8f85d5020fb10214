// CFR: CNPs for out-of-order packets, and the window that obeys them.
#include "rdma/cc/cfr.h"

#include <catch2/catch.hpp>

#include "rdma/cc/window_limiter.h"
#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kStep = 55 * kMicrosecond;
constexpr uint32_t kFull = 512 * 1024;

// Lets `behind` packets overtake the one with this PSN.
struct Late {
  World& world;
  Meddler meddler;
  PacketPtr held;
  uint32_t passed = 0;
  bool done = false;
  Late(World& w, const char* link, uint32_t psn, uint32_t behind)
      : world(w), meddler(w, w.link(link), 1, {}) {
    meddler.script = [this, psn, behind](const wire::Parsed& parsed, Packet& packet) {
      if (!is_data(parsed) || done) return false;
      if (parsed.headers.bth.psn == psn && !held) {
        held = meddler.copy(packet);
        return true;
      }
      if (held && ++passed == behind) {
        done = true;
        world.scheduler.after(event, 0);
      }
      return false;
    };
  }
  void deliver(TimeNs) { meddler.deliver(std::move(held)); }
  Event event = event_of<&Late::deliver>(this);
};

}  // namespace

TEST_CASE("CFR: a CNP halves the window, at most once in 50 us and never below a packet") {
  WindowLimiter limiter;
  CHECK(!limiter.limits());
  CHECK(limiter.window() == kFull);
  uint32_t window = kFull;
  TimeNs now = 1000;
  for (int i = 0; i < 12; ++i) {
    limiter.receive_cnp(1024, now);
    window = std::max(window / 2, 1024u);
    CHECK(limiter.window() == window);
    limiter.receive_cnp(1024, now + 50 * kMicrosecond - 1);  // too soon
    CHECK(limiter.window() == window);
    now += 50 * kMicrosecond;
  }
  CHECK(limiter.window() == 1024);
}

TEST_CASE("CFR: the first CNP halves the window at any time of a virtual clock") {
  for (TimeNs now : {TimeNs{0}, (TimeNs{1} << 62) + 1, kNever - WindowLimiter::kCutGap}) {
    WindowLimiter limiter;
    limiter.receive_cnp(1024, now);
    CHECK(limiter.window() == kFull / 2);
  }
}

TEST_CASE("CFR: without CNPs each 55 us halves the distance five times, then adds a packet") {
  WindowLimiter limiter;
  limiter.receive_cnp(1024, 0);
  limiter.receive_cnp(1024, 50 * kMicrosecond);
  TimeNs quiet = 50 * kMicrosecond;
  uint32_t window = kFull / 4, target = kFull / 2;
  CHECK(limiter.window() == window);
  for (int step = 1; limiter.limits(); ++step) {
    limiter.advance(1024, quiet + step * kStep - 1);
    CHECK(limiter.window() == window);
    limiter.advance(1024, quiet + step * kStep);
    window += step <= 5 ? (target - window) / 2 : 1024;
    CHECK(limiter.window() == std::min(window, kFull));
    REQUIRE(step < 1000);
  }
  CHECK(limiter.window() == kFull);
  // A CNP that comes too soon to cut still restarts the quiet time.
  limiter.receive_cnp(1024, kSecond);
  limiter.receive_cnp(1024, kSecond + 40 * kMicrosecond);
  limiter.advance(1024, kSecond + kStep);
  CHECK(limiter.window() == kFull / 2);
  limiter.advance(1024, kSecond + 40 * kMicrosecond + kStep);
  CHECK(limiter.window() == kFull / 4 * 3);
}

TEST_CASE("CFR: a gap of at least the threshold is answered by one CNP, without any ECN mark") {
  for (uint32_t threshold : {1u, 4u}) {
    for (uint32_t overtaken : {0u, 1u, 3u, 4u}) {
      INFO("threshold " << threshold << ", " << overtaken << " packets come too early");
      Pair pair;
      set_cfr(pair.link.far_device,
              {{"enable", "1"}, {"ooo_threshold", std::to_string(threshold)}});
      Late late(pair.world, "sw_0-mb_1", overtaken ? 5 : 1000, overtaken);
      // Up to the last one that overtakes: behind a gap go-back-N sees none but gaps.
      uint32_t length = 256 * (6 + overtaken);
      CHECK(pair.outcome(pair.link.write(1, 0, length)) == WcStatus::kSuccess);
      CHECK(pair.same(0, 0, length));
      uint64_t expected = overtaken >= threshold ? 1 : 0;
      CHECK(pair.far().np_cnp_sent_ooo.get() == expected);
      CHECK(pair.far().np_cnp_sent.get() == expected);
      CHECK(pair.far().np_cnp_sent_ecn.get() == 0);
      CHECK(pair.far().np_ecn_marked_roce_packets.get() == 0);
      CHECK(pair.near().rp_cnp_ignored.get() == expected);  // CFR is on at the receiver alone
      CHECK(pair.near().rp_cnp_handled.get() == 0);
    }
  }
}

TEST_CASE("CFR: out-of-order READ responses are answered by a CNP to the responder") {
  Pair pair;
  fill(pair.far_bytes(), 9);
  set_cfr(pair.link.near_device, {{"enable", "1"}});
  Late late(pair.world, "sw_0-mb_0", 5, 2);
  CHECK(pair.outcome(pair.link.read(1, 0, 256 * 20)) == WcStatus::kSuccess);
  CHECK(pair.same(0, 0, 256 * 20));
  CHECK(pair.near().np_cnp_sent_ooo.get() == 1);
  CHECK(pair.far().rp_cnp_ignored.get() == 1);
}

TEST_CASE("CFR: duplicates are no gap, and no CNP is sent while it is off") {
  for (bool on : {true, false}) {
    Pair pair;
    if (on) set_cfr(pair.link.far_device, {{"enable", "1"}});
    Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
    meddler.script = [&](const wire::Parsed& parsed, Packet& packet) {
      if (parsed.headers.bth.psn == 3 && on) meddler.deliver(meddler.copy(packet));
      return !on && parsed.headers.bth.psn == 3 && pair.far().out_of_sequence.get() == 0;
    };
    CHECK(pair.outcome(pair.link.write(1, 0, 256 * 10)) == WcStatus::kSuccess);
    CHECK((pair.far().duplicate_request.get() > 0) == on);
    CHECK((pair.far().out_of_sequence.get() > 0) == !on);
    CHECK(pair.far().np_cnp_sent.get() == 0);
  }
}

TEST_CASE("CFR: out-of-order CNPs keep the minimum gap N") {
  World world;
  set_cfr(world.device("mb_1"), {{"enable", "1"}});
  set(world.link("sw_0-mb_1"), lossy(world.link("sw_0-mb_1").parameters(), 0.05));
  RunningFlow stream(world, FlowOp::kWrite);
  world.scheduler.run_until(5 * kMillisecond);
  CHECK(world.counters("mb_1").np_cnp_sent_ooo.get() > 20);
  CHECK(world.counters("mb_1").np_cnp_sent_ooo.get() <= 101);  // one each 50 us
  stream.flow.stop();
}

TEST_CASE("CFR: octets in flight stay within the window, one packet always goes, nothing stalls") {
  for (uint32_t mtu : {256u, 1024u, 4096u}) {
    INFO("MTU " << mtu);
    World world;
    set_cfr(world.device("mb_0"), {{"enable", "1"}});
    FlowSpec spec = RunningFlow::spec_of("f", FlowOp::kWrite, "mb_0", "mb_1");
    spec.mtu = mtu;
    spec.window = 4096;
    // Octets are acknowledged after the last of their message has passed mb_1's link; octets that
    // mb_1 has not answered are in flight.
    uint64_t highest = 0, acknowledged = 0, most = 0;
    bool watching = false;
    Meddler out(world, world.link("mb_0-sw_0"), 1, {});
    out.script = [&](const wire::Parsed& parsed, Packet&) {
      highest = unwrap_psn(parsed.headers.bth.psn, highest ? highest : kPsnBase);
      if (watching) most = std::max(most, highest - acknowledged);
      return false;
    };
    Meddler back(world, world.link("sw_0-mb_0"), 1, {});
    back.script = [&](const wire::Parsed& parsed, Packet&) {
      if (!is_cnp(parsed)) acknowledged = unwrap_psn(parsed.headers.bth.psn, highest);
      return false;
    };
    RunningFlow stream(world, spec);
    world.scheduler.run_until(kMillisecond);
    CHECK(stream.window() == kFull);
    uint32_t window = kFull;
    for (int cut = 0; cut < 12; ++cut) {
      send_cnp(world, "mb_0", "mb_1");
      window = std::max(window / 2, mtu);
      CHECK(stream.window() == window);
      // The window rules after a round trip; before that, earlier packets are in flight.
      world.scheduler.run_until(world.scheduler.now() + 40 * kMicrosecond);
      most = 0;
      watching = true;
      uint64_t before = stream.stats->sender.window.get();
      world.scheduler.run_until(world.scheduler.now() + 10 * kMicrosecond);
      CHECK(before == window);
      // A reduced window lets one more packet go, to learn what has arrived.
      if (window < 64 * 1024) CHECK(most * mtu <= window + mtu);
      watching = false;
    }
    CHECK(stream.window() == mtu);
    uint64_t packets = world.counters("mb_0").port_xmit_packets.get();
    world.scheduler.run_until(world.scheduler.now() + 50 * kMicrosecond);
    CHECK(world.counters("mb_0").port_xmit_packets.get() > packets + 3);
    // Off again: from a packet's window, a packet each 55 us.
    world.scheduler.run_until(world.scheduler.now() + (kFull / mtu + 6) * kStep + kMillisecond);
    CHECK(stream.window() == kFull);
    CHECK(stream.stats->timeouts.get() == 0);
    CHECK(world.counters("mb_0").local_ack_timeout_err.get() == 0);
    stream.flow.stop();
    CHECK(stream.stats->mismatched.get() == 0);
    CHECK(stream.stats->cnps.get() == 12);
    CHECK(world.counters("mb_0").rp_cnp_handled.get() == 12);
  }
}

TEST_CASE("CFR: a window of one packet sends messages of any size") {
  for (uint64_t size : {1ull, 100ull, 4096ull, 5000ull, 100'000ull}) {
    INFO("size " << size);
    World world;
    set_cfr(world.device("mb_0"), {{"enable", "1"}});
    FlowSpec spec = RunningFlow::spec_of("f", FlowOp::kSend, "mb_0", "mb_1");
    spec.size = size;
    RunningFlow stream(world, spec);
    for (int i = 0; i < 10; ++i) {
      send_cnp(world, "mb_0", "mb_1");
      world.scheduler.run_until(world.scheduler.now() + 50 * kMicrosecond);
    }
    CHECK(stream.window() == 4096);
    uint64_t before = stream.stats->messages.get();
    world.scheduler.run_until(world.scheduler.now() + kMillisecond);
    CHECK(stream.stats->messages.get() > before);
    CHECK(world.counters("mb_0").local_ack_timeout_err.get() == 0);
    stream.flow.stop();
    CHECK(stream.stats->mismatched.get() == 0);
  }
}

TEST_CASE("CFR: READ responses leave at the window's octets in a usual round trip") {
  World world;
  set_cfr(world.device("mb_1"), {{"enable", "1"}});
  FlowSpec spec = RunningFlow::spec_of("f", FlowOp::kRead, "mb_0", "mb_1");
  spec.mtu = 1024;
  RunningFlow stream(world, spec);
  auto sent_in = [&](TimeNs duration) {
    uint64_t before = world.counters("mb_1").port_xmit_packets.get();
    world.scheduler.run_until(world.scheduler.now() + duration);
    return world.counters("mb_1").port_xmit_packets.get() - before;
  };
  uint64_t unlimited = sent_in(kMillisecond);
  for (int cut = 0; cut < 7; ++cut) {
    send_cnp(world, "mb_1", "mb_0");
    if (cut < 6) world.scheduler.run_until(world.scheduler.now() + 50 * kMicrosecond);
  }
  CHECK(stream.window() == kFull / 128);
  // 4 packets in each 16 us, the usual round trip before one is measured. The time that the link
  // may catch up was used up by the window before.
  uint64_t packets = sent_in(48 * kMicrosecond);
  CHECK(packets >= 11);
  CHECK(packets <= 13);
  // Back at the full window: five steps, then a packet a step.
  world.scheduler.run_until(world.scheduler.now() + (kFull / 1024 + 6) * kStep);
  CHECK(stream.window() == kFull);
  CHECK(sent_in(kMillisecond) >= unlimited - 1);
  stream.flow.stop();
  CHECK(stream.stats->mismatched.get() == 0);
  CHECK(world.counters("mb_0").local_ack_timeout_err.get() == 0);
  CHECK(world.counters("mb_1").rp_cnp_handled.get() == 7);
}

TEST_CASE("CFR: with loss and no ECN the receiver sends CNPs and the sender's window shrinks") {
  World world;
  for (const char* device : {"mb_0", "mb_1"}) set_cfr(world.device(device), {{"enable", "1"}});
  RunningFlow stream(world, FlowOp::kWrite);
  world.scheduler.run_until(kMillisecond);
  CHECK(stream.window() == kFull);
  set(world.link("sw_0-mb_1"), lossy(world.link("sw_0-mb_1").parameters(), 0.02));
  world.scheduler.run_until(3 * kMillisecond);
  CHECK(stream.window() < kFull / 4);
  PortCounters& far = world.counters("mb_1");
  CHECK(far.np_ecn_marked_roce_packets.get() == 0);
  CHECK(far.np_cnp_sent.get() == far.np_cnp_sent_ooo.get());
  stream.flow.stop();
  CHECK(stream.stats->mismatched.get() == 0);
  CHECK(world.counters("mb_0").rp_cnp_handled.get() == stream.stats->cnps.get());
}
