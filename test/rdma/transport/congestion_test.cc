// Congestion control of a queue pair: the reaction that acts, its effect on the wire, and changes
// of settings under traffic.
#include "rdma/transport/congestion.h"

#include <catch2/catch.hpp>
#include <map>

#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Fixes the rate: increases are rare, the first CNP sets it.
void hold_rate(Port& port, uint64_t mbps) {
  set_ecn(port, {{"roce_rp/enable/0", "1"},
                 {"roce_rp/rpg_time_reset", "131071"},
                 {"roce_rp/rpg_byte_reset", "0"},
                 {"roce_rp/rate_to_set_on_first_cnp", std::to_string(mbps)}});
}

}  // namespace

TEST_CASE("NP: the first CNP may go at any time of a virtual clock, the next one after the gap") {
  constexpr TimeNs kGap = 4 * kMicrosecond;
  for (TimeNs now : {TimeNs{0}, (TimeNs{1} << 62) + 1, kNever - kGap}) {
    NotificationPoint np;
    CHECK(np.may_notify(kGap, now));
    np.begin();
    CHECK(!np.may_notify(kGap, now));
    np.sent(now);
    CHECK(!np.may_notify(kGap, now + kGap - 1));
    CHECK(np.may_notify(kGap, now + kGap));
  }
}

TEST_CASE("RP: the rate that is set is the rate on the wire") {
  struct Case {
    FlowOp op;
    const char *sender, *peer;
  };
  for (const Case& one : {Case{FlowOp::kWrite, "mb_0", "mb_1"}, Case{FlowOp::kRead, "mb_1", "mb_0"},
                          Case{FlowOp::kUc, "mb_0", "mb_1"}, Case{FlowOp::kUd, "mb_0", "mb_1"}}) {
    for (uint64_t mbps : {50u, 1000u, 9000u}) {
      INFO("operation " << static_cast<int>(one.op) << " at " << mbps << " Mbit/s");
      World world;
      hold_rate(world.device(one.sender).port(), mbps);
      RunningFlow stream(world, one.op);
      world.scheduler.run_until(kMillisecond);
      send_cnp(world, one.sender, one.peer);
      world.scheduler.run_until(5 * kMillisecond);  // packets sent at the old rate have arrived
      CHECK(stream.rate() == mbps * 1'000'000);
      const char* link = one.op == FlowOp::kRead ? "mb_1-sw_0" : "mb_0-sw_0";
      LinkCounters& counters = world.link(link).counters();
      uint64_t octets = counters.bytes.get(), packets = counters.packets.get();
      world.scheduler.run_until(105 * kMillisecond);
      octets = counters.bytes.get() - octets;
      packets = counters.packets.get() - packets;
      double bps = static_cast<double>(octets + packets * kEthernetOverhead) * 8 / 0.1;
      // Tolerance of a packet at either end: at 50 Mbit/s there are 150 in a tenth of a second.
      CHECK(bps == Approx(static_cast<double>(mbps) * 1e6).epsilon(0.01));
      CHECK(world.counters(one.sender).rp_cnp_handled.get() == 1);
      CHECK(world.counters("mb_0").local_ack_timeout_err.get() == 0);
      stream.flow.stop();
      CHECK(stream.stats->mismatched.get() == 0);
      CHECK(stream.stats->retransmitted.get() == 0);
    }
  }
}

TEST_CASE("RP: queue pairs that share a link keep their rates") {
  World world;
  hold_rate(world.device("mb_0").port(), 2300);
  // Two queue pairs of long packets, two of short ones, so that they do not fall into step.
  FlowSpec spec = RunningFlow::spec_of("long", FlowOp::kWrite, "mb_0", "mb_1");
  spec.qps = 2;
  RunningFlow long_packets(world, spec);
  spec.name = "short";
  spec.mtu = 1024;
  RunningFlow short_packets(world, spec);
  for (uint32_t i = 0; i < 4; ++i) send_cnp(world, "mb_0", "mb_1", kFirstQp + i);
  world.scheduler.run_until(5 * kMillisecond);
  uint64_t before[] = {long_packets.stats->bytes.get(), short_packets.stats->bytes.get()};
  world.scheduler.run_until(125 * kMillisecond);
  // Load of 92 %: a packet often finds the link busy. Bytes count by whole messages: one more or
  // less of 256 are in 69 MB.
  double wire[] = {4096.0 / (4096 + 44 + 38), 1024.0 / (1024 + 44 + 38)};
  RunningFlow* flows[] = {&long_packets, &short_packets};
  for (int i = 0; i < 2; ++i) {
    double bps = static_cast<double>(flows[i]->stats->bytes.get() - before[i]) * 8 / 0.12;
    CHECK(bps == Approx(2 * 2300e6 * wire[i]).epsilon(0.01));
    flows[i]->flow.stop();
  }
}

TEST_CASE("RP: very low rates cause no acknowledgement time-outs") {
  World world;
  set_ecn(world.device("mb_0").port(), {{"roce_rp/enable/0", "1"},
                                        {"roce_rp/rpg_time_reset", "131071"},
                                        {"roce_rp/rpg_min_rate", "4"},
                                        {"roce_rp/rate_to_set_on_first_cnp", "4"}});
  RunningFlow stream(world, FlowOp::kWrite);
  // Half the window of 128 packets takes half a second, the time-out is 67 ms.
  for (int i = 0; i < 20; ++i) {
    send_cnp(world, "mb_0", "mb_1");
    world.scheduler.run_until(world.scheduler.now() + 100 * kMillisecond);
  }
  CHECK(stream.rate() == 4'000'000);
  CHECK(world.counters("mb_0").local_ack_timeout_err.get() == 0);
  stream.flow.stop();
  CHECK(stream.stats->retransmitted.get() == 0);
}

// At 1 Mb/s a packet of 4 KiB takes 33 ms. The timer raises the rate after T = 55 us, halfway to
// the 10 Gb/s before the cut: the next packet goes then, not 33 ms later.
TEST_CASE("RP: a packet that waits leaves as early as the raised rate allows") {
  World world;
  set_ecn(world.device("mb_0").port(),
          {{"roce_rp/enable/0", "1"}, {"roce_rp/rate_to_set_on_first_cnp", "1"}});
  RunningFlow stream(world, FlowOp::kWrite);
  world.scheduler.run_until(kMillisecond);
  send_cnp(world, "mb_0", "mb_1");
  world.scheduler.run_until(kMillisecond + 30 * kMicrosecond);
  CHECK(stream.rate() == 1'000'000);
  uint64_t before = world.counters("mb_0").port_xmit_packets.get();
  world.scheduler.run_until(kMillisecond + 130 * kMicrosecond);
  // 5 Gb/s from about 60 us on, 7.5 from about 115 us on: 1 packet each 6.7, then 4.5 us.
  uint64_t sent = world.counters("mb_0").port_xmit_packets.get() - before;
  CHECK(sent >= 7);
  CHECK(sent <= 14);
  stream.flow.stop();
}

TEST_CASE("RP: turning it off restores the link's rate at once") {
  World world;
  hold_rate(world.device("mb_0").port(), 1);
  RunningFlow stream(world, FlowOp::kWrite);
  send_cnp(world, "mb_0", "mb_1");
  world.scheduler.run_until(kMillisecond);
  set_ecn(world.device("mb_0").port(), {});
  uint64_t before = world.counters("mb_0").port_xmit_packets.get();
  world.scheduler.run_until(2 * kMillisecond);
  CHECK(world.counters("mb_0").port_xmit_packets.get() - before > 295);  // 299 at line rate
  CHECK(stream.rate() == 10'000'000'000);
  stream.flow.stop();
}

TEST_CASE("RP: four senders that a queue marks share its link fairly, and fill it") {
  Topology topology;
  topology.switches = {{"s"}};
  for (uint8_t n = 0; n < 5; ++n) {
    std::string name = fmt::format("d{}", n);
    topology.devices.push_back(
        {name,
         fmt::format("0000:{:02x}:00.0", n + 1),
         {{fmt::format("eth{}", n), {2, 0, 0, 0, 0, n}, {10, 7, 0, n}, {}}}});
    LinkSpec cable{name, "s"};
    cable.buffer_bytes = 16 << 20;
    topology.links.push_back(cable);
  }
  World world(3, topology);
  Rng rng(3, "red");
  uint64_t marked = 0;
  // RED with the paper's thresholds, on the switch's queue.
  Meddler red(world, world.link("s-d0"), 3, {});
  red.script = [&](const wire::Parsed& parsed, Packet& packet) {
    if (!is_data(parsed)) return false;
    CHECK(ecn_of(packet) == Ecn::kCapable0);
    uint64_t in = 0, out = world.link("s-d0").counters().bytes.get();
    for (int n = 1; n < 5; ++n) {
      in += world.link(fmt::format("d{}-s", n)).counters().bytes.get();
    }
    double queue = static_cast<double>(in - std::min(in, out));
    double p = queue > 200e3 ? 1 : std::max(0.0, 0.01 * (queue - 5e3) / 195e3);
    if (!rng.chance(p)) return false;
    mark(packet);
    ++marked;
    return false;
  };
  std::vector<std::unique_ptr<RunningFlow>> streams;
  for (int n = 1; n < 5; ++n) {
    std::string from = fmt::format("d{}", n);
    set_ecn(world.device(from).port(), {{"roce_rp/enable/0", "1"}});
    streams.push_back(std::make_unique<RunningFlow>(
        world, RunningFlow::spec_of(from.c_str(), FlowOp::kWrite, from.c_str(), "d0")));
  }
  world.scheduler.run_until(100 * kMillisecond);
  std::vector<double> moved;
  for (auto& stream : streams) moved.push_back(-static_cast<double>(stream->stats->bytes.get()));
  world.scheduler.run_until(200 * kMillisecond);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < moved.size(); ++i) {
    moved[i] += static_cast<double>(streams[i]->stats->bytes.get());
    sum += moved[i];
    squares += moved[i] * moved[i];
  }
  CHECK(marked > 100);
  CHECK(sum * sum / (4 * squares) >= 0.9);
  // Full packets carry 4096 of 4198 octets; the paper leaves a few per cent unused.
  CHECK(sum * 8 / 0.1 > 0.85 * 10e9 * 4096 / 4198);
  for (auto& stream : streams) stream->flow.stop();
}

TEST_CASE("congestion: only data is ECT(0), while a reaction is on; a class keeps its ECN bits") {
  World world;
  Device& near = world.device("mb_0");
  std::map<wire::Opcode, unsigned> bits;  // one bit for each ECN field seen
  auto watch = [&](const wire::Parsed& parsed, Packet& packet) {
    bits[parsed.headers.bth.opcode] |= 1u << static_cast<unsigned>(ecn_of(packet));
    return false;
  };
  Meddler out(world, world.link("mb_0-sw_0"), 1, {}), in(world, world.link("mb_1-sw_0"), 1, {});
  out.script = in.script = watch;
  FlowSpec spec = RunningFlow::spec_of("w", FlowOp::kWrite, "mb_0", "mb_1");
  RunningFlow write(world, spec);
  RunningFlow read(world, RunningFlow::spec_of("r", FlowOp::kRead, "mb_1", "mb_0"));
  auto seen = [&](wire::Opcode opcode) {
    world.scheduler.run_until(world.scheduler.now() + kMillisecond);
    bits.clear();
    world.scheduler.run_until(world.scheduler.now() + kMillisecond);
    return bits[opcode];
  };
  constexpr unsigned kNot = 1, kEct0 = 4, kEct1 = 2;
  auto data = wire::Opcode::kRcWriteMiddle, response = wire::Opcode::kRcReadResponseMiddle,
       answer = wire::Opcode::kRcAck;
  CHECK(seen(data) == kNot);
  WindowTaker owner;
  for (int by = 0; by < 3; ++by) {
    INFO("reaction " << by);
    if (by == 0) set_ecn(near.port(), {{"roce_rp/enable/0", "1"}});
    if (by == 1) set_cfr(near, {{"enable", "1"}});
    if (by == 2) REQUIRE(owner.take(near));
    CHECK(seen(data) == kEct0);
    CHECK(bits[response] == kEct0);  // sent by mb_0, too
    CHECK(bits[answer] == kNot);
    if (by == 0) set_ecn(near.port(), {{"roce_rp/enable/1", "1"}});  // another priority
    if (by == 1) set_cfr(near, {});
    if (by == 2) near.registers().give_back(owner);
    CHECK(seen(data) == kNot);
  }
  // A traffic class with ECN bits keeps them.
  set_ecn(near.port(), {{"roce_rp/enable/0", "1"}});
  set_class(near.port(), "1");
  CHECK(seen(data) == kEct1);
  set_class(near.port(), "-1");
  CHECK(seen(data) == kEct0);
  for (RunningFlow* stream : {&write, &read}) {
    stream->flow.stop();
    CHECK(stream->stats->mismatched.get() == 0);
    CHECK(stream->stats->retransmitted.get() == 0);
  }
}

TEST_CASE(
    "congestion: a port's traffic class applies to all its packets, of new and of present flows") {
  World world;
  std::map<uint8_t, unsigned> classes;
  Meddler out(world, world.link("mb_0-sw_0"), 1, {});
  out.script = [&](const wire::Parsed& parsed, Packet&) {
    ++classes[parsed.headers.v4.tos];
    return false;
  };
  RunningFlow present(world, FlowOp::kWrite);
  world.scheduler.run_until(kMillisecond);
  CHECK(classes.size() == 1);
  CHECK(classes[0] > 0);
  set_class(world.device("mb_0").port(), "106");
  world.scheduler.run_until(world.scheduler.now() + 100 * kMicrosecond);
  classes.clear();
  RunningFlow next(world, RunningFlow::spec_of("n", FlowOp::kUd, "mb_0", "mb_1"));
  world.scheduler.run_until(world.scheduler.now() + kMillisecond);
  CHECK(classes.size() == 1);
  CHECK(classes[106] > 0);
  // RP is enabled by the priority of the packets: traffic class 106 is priority 3.
  set_ecn(world.device("mb_0").port(), {{"roce_rp/enable/3", "1"}});
  send_cnp(world, "mb_0", "mb_1");
  CHECK(world.counters("mb_0").rp_cnp_handled.get() == 1);
  set_class(world.device("mb_0").port(), "-1");
  send_cnp(world, "mb_0", "mb_1");
  CHECK(world.counters("mb_0").rp_cnp_ignored.get() == 1);
  present.flow.stop();
  next.flow.stop();
}

TEST_CASE("congestion: exactly one acts: the owner of the windows, else CFR, else the RP") {
  World world;
  Device& near = world.device("mb_0");
  set_ecn(near.port(), {{"roce_rp/enable/0", "1"}});
  RunningFlow stream(world, FlowOp::kWrite);
  world.scheduler.run_until(kMillisecond);
  CHECK(stream.window() == kNoWindow);
  send_cnp(world, "mb_0", "mb_1");
  CHECK(stream.rate() == 5'000'000'000);
  CHECK(stream.window() == kNoWindow);

  set_cfr(near, {{"enable", "1"}});
  CHECK(stream.rate() == 10'000'000'000);
  CHECK(stream.window() == WindowLimiter::kFull);
  send_cnp(world, "mb_0", "mb_1");
  CHECK(stream.rate() == 10'000'000'000);
  CHECK(stream.window() == WindowLimiter::kFull / 2);

  WindowTaker owner, other;
  REQUIRE(owner.take(near));
  CHECK(other.take(near).error().code == EBUSY);
  CHECK(stream.window() == kNoWindow);
  send_cnp(world, "mb_0", "mb_1");
  CHECK(stream.window() == kNoWindow);
  CHECK(near.find_qp(kFirstQp)->congestion().cnps() == 3);
  owner.set_window(near, kFirstQp, 8192);
  world.scheduler.run_until(world.scheduler.now() + 200 * kMicrosecond);
  CHECK(stream.window() == 8192);
  uint64_t before = world.counters("mb_0").port_xmit_packets.get();
  world.scheduler.run_until(world.scheduler.now() + 100 * kMicrosecond);
  // Two packets in a round trip of some 12 us; without a window there would be 30.
  CHECK(world.counters("mb_0").port_xmit_packets.get() - before > 10);
  CHECK(world.counters("mb_0").port_xmit_packets.get() - before < 22);
  owner.set_window(near, kFirstQp, 1);  // one packet may always go
  before = world.counters("mb_0").port_xmit_packets.get();
  world.scheduler.run_until(world.scheduler.now() + 100 * kMicrosecond);
  CHECK(world.counters("mb_0").port_xmit_packets.get() - before > 4);

  near.registers().give_back(other);  // no effect: another owner has the windows
  CHECK(near.cfr().controlled());
  near.registers().give_back(owner);
  CHECK(stream.window() == WindowLimiter::kFull);
  set_cfr(near, {});
  send_cnp(world, "mb_0", "mb_1");
  CHECK(stream.rate() == 5'000'000'000);
  CHECK(world.counters("mb_0").rp_cnp_handled.get() == 4);
  CHECK(world.counters("mb_0").rp_cnp_ignored.get() == 0);
  stream.flow.stop();
  CHECK(stream.stats->cnps.get() == 4);
  CHECK(stream.stats->mismatched.get() == 0);
}

TEST_CASE("congestion: CFR keeps its setting while the windows are owned, and returns to it") {
  World world;
  Device& device = world.device("mb_0");
  set_cfr(device, {{"enable", "1"}});
  WindowTaker owner;
  REQUIRE(owner.take(device));
  CHECK(!device.cfr().enabled());
  CHECK(device.cfr().check(values_with(kCfrKnobs, {})).error().code == EBUSY);
  CHECK(device.cfr().check(values_with(kCfrKnobs, {{"enable", "1"}, {"ooo_threshold", "9"}})));
  device.registers().give_back(owner);
  CHECK(device.cfr().enabled());
  CHECK(owner.lost == 0);
  REQUIRE(owner.take(device));
  device.leave();
  CHECK(owner.lost == 1);
  CHECK(device.cfr().enabled());
  device.arrive();  // with the defaults of its knobs
  CHECK(!device.cfr().enabled());
  CHECK(!device.cfr().controlled());
}

TEST_CASE(
    "congestion: a CNP without a matching queue pair is ignored, and counts as nothing else") {
  World world;
  Device& near = world.device("mb_0");
  set_cfr(near, {{"enable", "1"}});
  send_cnp(world, "mb_0", "mb_1", 4711);
  PortCounters& counters = world.counters("mb_0");
  CHECK(counters.rp_cnp_ignored.get() == 1);
  RunningFlow stream(world, FlowOp::kUc);
  send_cnp(world, "mb_0", "mb_1");  // CFR is for RC
  CHECK(counters.rp_cnp_ignored.get() == 2);
  set_ecn(near.port(), {{"roce_rp/enable/0", "1"}});
  send_cnp(world, "mb_0", "mb_0");  // not from the far end
  CHECK(counters.rp_cnp_ignored.get() == 3);
  CHECK(counters.rp_cnp_handled.get() == 0);
  send_cnp(world, "mb_0", "mb_1");
  CHECK(counters.rp_cnp_handled.get() == 1);
  CHECK(counters.rx_unknown_qp.get() == 0);
  CHECK(counters.np_cnp_sent.get() == 0);
  CHECK(counters.np_ecn_marked_roce_packets.get() == 0);
  stream.flow.stop();
}

TEST_CASE("congestion: every message arrives whole, whatever is switched under load") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed, "toggles");
    World world(seed);
    Meddler::Odds odds;
    if (seed % 2) odds = {0.005, 0.005, 0.02, 0.002};
    Meddler there(world, world.link("sw_0-mb_1"), seed, odds);
    Meddler back(world, world.link("sw_0-mb_0"), seed, odds);
    auto marks = [&](const wire::Parsed& parsed, Packet& packet) {
      if (is_data(parsed) && rng.chance(0.2)) mark(packet);
      return false;
    };
    there.script = back.script = marks;
    std::vector<std::unique_ptr<RunningFlow>> streams;
    for (FlowOp op : {FlowOp::kWrite, FlowOp::kSend, FlowOp::kRead, FlowOp::kAtomic}) {
      FlowSpec spec = RunningFlow::spec_of(fmt::format("f{}", static_cast<int>(op)).c_str(), op,
                                           "mb_0", "mb_1");
      spec.count = op == FlowOp::kAtomic ? 100 : 20;
      spec.size = op == FlowOp::kAtomic ? 8 : 100'000;
      spec.mtu = 1024;
      spec.timeout = 8;
      streams.push_back(std::make_unique<RunningFlow>(world, spec));
    }
    WindowTaker owner;
    for (int step = 0; step < 400 && world.outstanding.any(); ++step) {
      Device& device = world.device(rng.chance(0.5) ? "mb_0" : "mb_1");
      auto bit = [&] { return rng.chance(0.5) ? "1" : "0"; };
      switch (rng.below(6)) {
        case 0:
          set_ecn(device.port(), {{"roce_rp/enable/0", bit()},
                                  {"roce_np/enable/0", bit()},
                                  {"roce_rp/rpg_min_rate", "100"},
                                  {"roce_np/processing_delay", rng.chance(0.5) ? "0" : "30us"}});
          break;
        case 1:
          if (!device.cfr().controlled()) set_cfr(device, {{"enable", bit()}});
          break;
        case 2:
          if (!owner.take(device)) device.registers().give_back(owner);
          break;
        case 3:
          for (uint32_t qpn = kFirstQp; owner.page && device.find_qp(qpn); ++qpn) {
            owner.set_window(device, qpn, static_cast<uint32_t>(rng.below(20'000)));
            owner.line(qpn).probe += static_cast<uint32_t>(rng.below(2));
          }
          break;
        case 4:
          set_class(device.port(), rng.chance(0.5) ? "-1" : "32");
          break;
        case 5:
          device.pacing().apply(std::vector<KnobValue>{uint64_t{rng.chance(0.5)}});
          break;
      }
      world.scheduler.run_until(world.scheduler.now() + static_cast<TimeNs>(rng.below(100'000)));
    }
    REQUIRE(world.run_idle());
    for (auto& stream : streams) {
      CHECK(stream->state == "done");
      CHECK(stream->stats->mismatched.get() == 0);
    }
    for (const char* name : {"mb_0", "mb_1"}) world.device(name).cfr().return_windows(owner);
  }
}
