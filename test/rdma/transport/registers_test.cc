// Register pages: the engine's readings there, and its response to an owner's entries.
#include "rdma/transport/registers.h"

#include <catch2/catch.hpp>

#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

const rocefs_signals_page& page_of(Device& device) {
  return *device.registers().signals()->at<rocefs_signals_page>(0);
}
bool active(Device& device, uint32_t qpn) {
  uint32_t number = qpn - ROCEFS_FIRST_QPN;
  return page_of(device).active[number / 64] >> number % 64 & 1;
}

}  // namespace

TEST_CASE("registers: a queue pair has its line while it can send or receive") {
  World world;
  Device& device = world.device("mb_0");
  const rocefs_signals_page& page = page_of(device);
  int changes = 0;
  device.registers().on_change([&] { ++changes; });
  CompletionQueue cq(16);
  QpInit init;
  init.send_cq = init.receive_cq = &cq;
  init.owner = {4711, "ib_write_bw"};
  Qp* qp = *device.create_qp(init);
  const rocefs_qp_signals& line = *device.registers().signals_of(qp->number());
  CHECK(line.generation == 0);
  QpAttributes attributes;
  attributes.path.local = gids_of(device.spec().ports[0])[1];
  attributes.path.remote = gids_of(world.device("mb_1").spec().ports[0])[1];
  for (uint32_t life = 1; life <= 3; ++life) {
    REQUIRE(qp->bring_up(attributes));
    CHECK(line.generation == 2 * life - 1);
    CHECK(line.pid == 4711);
    CHECK(std::string(line.comm) == "ib_write_bw");
    CHECK(line.rate_bps == 10'000'000'000);
    CHECK(page.active_count == 1);
    CHECK(active(device, qp->number()));
    CHECK(page.changes == 2 * life - 1);
    REQUIRE(qp->modify(life == 1 ? QpState::kError : QpState::kReset));
    if (life == 1) REQUIRE(qp->modify(QpState::kReset));
    CHECK(line.generation == 2 * life);
    CHECK(page.active_count == 0);
    CHECK(!active(device, qp->number()));
  }
  CHECK(changes == 6);
  device.destroy_qp(*qp);
  CHECK(changes == 6);
}

TEST_CASE("registers: a device has as many queue pairs as lines") {
  World world;
  Device& device = world.device("mb_0");
  CompletionQueue cq(1);
  QpInit init;
  init.send_cq = init.receive_cq = &cq;
  init.send_depth = init.receive_depth = 1;
  for (int i = 0; i < ROCEFS_MAX_QPS; ++i) REQUIRE(device.create_qp(init));
  CHECK(device.create_qp(init).error().code == ENOMEM);
  CHECK(device.registers().signals_of(ROCEFS_FIRST_QPN + ROCEFS_MAX_QPS - 1));
  CHECK(!device.registers().signals_of(ROCEFS_FIRST_QPN + ROCEFS_MAX_QPS));
  CHECK(!device.registers().signals_of(0));
}

TEST_CASE("registers: CNPs are counted in their queue pair's line") {
  World world;
  RunningFlow stream(world, FlowOp::kWrite);
  const rocefs_qp_signals& line = *world.device("mb_0").registers().signals_of(kFirstQp);
  for (uint64_t count = 1; count <= 3; ++count) {
    send_cnp(world, "mb_0", "mb_1");
    CHECK(line.cnps == count);
  }
  stream.flow.stop();
}

TEST_CASE("registers: CFR's window is in the queue pair's line while it limits") {
  World world;
  Device& near = world.device("mb_0");
  RunningFlow stream(world, FlowOp::kWrite);
  const rocefs_qp_signals& line = *near.registers().signals_of(kFirstQp);
  CHECK(line.window == kNoWindow);
  set_cfr(near, {{"enable", "1"}});
  CHECK(line.window == kNoWindow);  // it limits nothing yet
  send_cnp(world, "mb_0", "mb_1");
  CHECK(line.window == WindowLimiter::kFull / 2);
  CHECK(line.window == stream.window());
  set_cfr(near, {});
  CHECK(line.window == kNoWindow);
  stream.flow.stop();
}

TEST_CASE("registers: a window applies if its generation is the queue pair's, and has one owner") {
  World world;
  Device& near = world.device("mb_0");
  RunningFlow stream(world, FlowOp::kWrite);
  WindowTaker first, second;
  REQUIRE(first.take(near));
  CHECK(second.take(near).error().code == EBUSY);
  first.set_window(near, kFirstQp, 4096);
  auto pass = [&] { world.scheduler.run_until(world.scheduler.now() + 100 * kMicrosecond); };
  pass();
  CHECK(stream.window() == 4096);
  first.line(kFirstQp).window += uint64_t{2} << 32;
  pass();
  CHECK(stream.window() == kNoWindow);
  near.registers().give_back(second);  // not the owner
  CHECK(near.cfr().controlled());
  near.registers().give_back(first);
  REQUIRE(second.take(near));
  first.set_window(near, kFirstQp, 1024);  // no effect: the page of a former owner
  pass();
  CHECK(stream.window() == kNoWindow);
  second.set_window(near, kFirstQp, 2048);
  pass();
  CHECK(stream.window() == 2048);
  stream.flow.stop();
  near.leave();
  CHECK(second.lost == 1);
  CHECK(second.take(near).error().code == ENODEV);
  near.arrive();
  CHECK(second.take(near));
}

// 10 Gb/s and 1 us a link, through the switch: a full packet takes 3.3 us on each of two links.
TEST_CASE("registers: a probe measures the time until its packet is acknowledged") {
  Pair pair;
  Device& near = pair.world.device("mb_0");
  WindowTaker owner;
  REQUIRE(owner.take(near));
  const rocefs_qp_signals& line = *near.registers().signals_of(kFirstQp);
  rocefs_qp_control& control = owner.line(kFirstQp);
  CHECK(pair.outcome(pair.link.write(1, 0, 256)) == WcStatus::kSuccess);
  auto quiet = Approx(static_cast<double>(line.rtt_ns)).margin(5);  // links carry fractions of 1 ns
  CHECK(line.rtt_probe == 0);                                       // no probe so far
  control.probe = 7;
  TimeNs before = pair.world.scheduler.now();
  CHECK(pair.outcome(pair.link.write(1, 0, 256)) == WcStatus::kSuccess);
  CHECK(line.rtt_probe == 7);
  CHECK(static_cast<TimeNs>(line.rtt_ns) == pair.world.scheduler.now() - before);
  CHECK(static_cast<double>(line.rtt_ns) == quiet);

  SECTION("in the middle of a message the probe requests an acknowledgement") {
    uint64_t asked = 0;
    Watch watch(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
      asked += parsed.headers.bth.ack_req;
      return false;
    });
    control.probe = 8;
    CHECK(pair.outcome(pair.link.write(1, 0, 256 * 12)) == WcStatus::kSuccess);
    CHECK(asked == 2);  // the first and the last of twelve
    CHECK(line.rtt_probe == 8);
    CHECK(static_cast<double>(line.rtt_ns) == quiet);
  }
  SECTION("a retransmitted packet does not answer it, the next new one does") {
    int seen = 0;
    Watch watch(pair, "sw_0-mb_1",
                [&](const wire::Parsed&, Packet&) { return ++seen == 1; });  // lost
    control.probe = 9;
    CHECK(pair.outcome(pair.link.write(1, 0, 256)) == WcStatus::kSuccess);
    CHECK(line.rtt_probe == 7);
    CHECK(pair.outcome(pair.link.write(1, 0, 256)) == WcStatus::kSuccess);
    CHECK(line.rtt_probe == 9);
    CHECK(static_cast<double>(line.rtt_ns) == quiet);
  }
  SECTION("a READ response answers it as well") {
    control.probe = 10;
    CHECK(pair.outcome(pair.link.read(1, 0, 256)) == WcStatus::kSuccess);
    CHECK(line.rtt_probe == 10);
  }
}

// A window of W in a round trip of R is W / R on the wire, with or without acknowledgements.
TEST_CASE("registers: unacknowledged traffic is paced by the window") {
  struct Case {
    FlowOp op;
    const char *sender, *peer;
  };
  for (const Case& one : {Case{FlowOp::kRead, "mb_1", "mb_0"}, Case{FlowOp::kUc, "mb_0", "mb_1"},
                          Case{FlowOp::kUd, "mb_0", "mb_1"}}) {
    INFO(one.sender << " sends, operation " << static_cast<int>(one.op));
    World world;
    Device& sender = world.device(one.sender);
    RunningFlow stream(world, one.op);
    WindowTaker owner;
    REQUIRE(owner.take(sender));
    CHECK(sender.registers().usual_rtt() == 16 * kMicrosecond);
    auto octets_in = [&](uint32_t window, TimeNs duration) {
      owner.set_window(sender, kFirstQp, window);
      world.scheduler.run_until(world.scheduler.now() + 200 * kMicrosecond);
      uint64_t before = world.counters(one.sender).port_xmit_data.get();
      world.scheduler.run_until(world.scheduler.now() + duration);
      return static_cast<double>(world.counters(one.sender).port_xmit_data.get() - before);
    };
    // 4096 octets in 16 us are 2 Gb/s of payload, and 1.5 % of headers.
    CHECK(octets_in(4096, 4 * kMillisecond) == Approx(4096 * 250).epsilon(0.03));
    CHECK(octets_in(1024, 8 * kMillisecond) == Approx(1024 * 500).epsilon(0.03));
    CHECK(octets_in(kNoWindow, 4 * kMillisecond) > 4'500'000);  // 5 MB at line rate
    // A window that opens while a packet waits shortens the wait.
    CHECK(octets_in(1, kMillisecond) < 3 * 4200);
    CHECK(octets_in(1 << 20, 4 * kMillisecond) > 4'500'000);
    sender.registers().give_back(owner);
    CHECK(octets_in(1, 4 * kMillisecond) > 4'500'000);
    stream.flow.stop();
    CHECK(stream.stats->mismatched.get() == 0);
  }
}
