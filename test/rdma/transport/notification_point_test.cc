// NP: the CNPs that answer marked packets, and their contents.
#include "rdma/transport/notification_point.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// CNPs from mb_1 to its switch, by the queue pair that they are for.
struct CnpWatch {
  Meddler meddler;
  std::map<uint32_t, std::vector<TimeNs>> times;
  std::vector<wire::Headers> all;
  explicit CnpWatch(World& world, const char* link = "mb_1-sw_0")
      : meddler(world, world.link(link), 1, {}) {
    meddler.script = [this, &world](const wire::Parsed& parsed, Packet&) {
      if (is_cnp(parsed)) {
        times[parsed.headers.bth.dest_qpn].push_back(world.scheduler.now());
        all.push_back(parsed.headers);
      }
      return false;
    };
  }
};

}  // namespace

TEST_CASE("NP: CNPs of a queue pair are never closer than N on the wire") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed, "np gaps");
    World world(seed);
    uint64_t gap_us = rng.chance(0.3) ? rng.below(5) : 5 + rng.below(50);
    uint64_t delay_ns = rng.chance(0.5) ? 0 : rng.below(100'000);
    set_ecn(world.device("mb_1").port(), {{"roce_np/min_time_between_cnps", std::to_string(gap_us)},
                                          {"roce_np/processing_delay", std::to_string(delay_ns)}});
    double odds = rng.uniform();
    Meddler marker(world, world.link("sw_0-mb_1"), seed, {});
    marker.script = [&](const wire::Parsed& parsed, Packet& packet) {
      if (is_data(parsed) && rng.chance(odds)) mark(packet);
      return false;
    };
    CnpWatch watch(world);
    FlowSpec spec = RunningFlow::spec_of("f", FlowOp::kWrite, "mb_0", "mb_1");
    spec.qps = 1 + static_cast<uint32_t>(rng.below(4));
    spec.mtu = 256u << rng.below(5);
    RunningFlow stream(world, spec);
    world.scheduler.run_until(2 * kMillisecond);
    CHECK(watch.times.size() == spec.qps);
    uint64_t sent = 0;
    for (const auto& [qpn, times] : watch.times) {
      sent += times.size();
      for (size_t i = 1; i < times.size(); ++i) {
        CHECK(times[i] - times[i - 1] >= static_cast<TimeNs>(gap_us) * kMicrosecond);
      }
    }
    CHECK(sent > 0);
    stream.flow.stop();
  }
}

TEST_CASE("NP: if every packet is marked, a CNP is sent every N") {
  World world;
  Meddler marker(world, world.link("sw_0-mb_1"), 1, {});
  marker.script = [](const wire::Parsed& parsed, Packet& packet) {
    if (is_data(parsed)) mark(packet);
    return false;
  };
  CnpWatch watch(world);
  RunningFlow stream(world, FlowOp::kWrite);
  world.scheduler.run_until(10 * kMillisecond);
  // A CNP waits for the next marked packet, 3.3 us apart, and for a packet that is being sent.
  CHECK(watch.all.size() <= 200);
  CHECK(watch.all.size() >= 187);
  CHECK(world.counters("mb_1").np_cnp_sent.get() >= watch.all.size());
  stream.flow.stop();
}

TEST_CASE("NP: a CNP is sent before the acknowledgement, or after the processing delay") {
  auto answered_at = [](const char* delay) {
    Pair pair;
    set_ecn(pair.link.far_device.port(), {{"roce_np/processing_delay", delay}});
    Meddler marker(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
    marker.script = [](const wire::Parsed&, Packet& packet) {
      mark(packet);
      return false;
    };
    std::vector<wire::Opcode> order;
    TimeNs at = 0;
    Meddler watch(pair.world, pair.world.link("mb_1-sw_0"), 1, {});
    watch.script = [&](const wire::Parsed& parsed, Packet&) {
      order.push_back(parsed.headers.bth.opcode);
      if (is_cnp(parsed)) at = pair.world.scheduler.now();
      return false;
    };
    pair.link.post(pair.link.write(1, 0, 100));
    pair.run();
    pair.world.scheduler.run_until(pair.world.scheduler.now() + kMillisecond);
    REQUIRE(order.size() == 2);
    CHECK((order[0] == wire::Opcode::kCnp) == (std::string_view(delay) == "0"));
    return at;
  };
  TimeNs at_once = answered_at("0");
  // Links carry fractions of a nanosecond from one packet to the next.
  CHECK(std::abs(answered_at("7us") - at_once - 7 * kMicrosecond) <= 1);
  CHECK(std::abs(answered_at("70us") - at_once - 70 * kMicrosecond) <= 1);
}

TEST_CASE("NP: a CNP goes to the sender of the marked packet, for every service") {
  struct Case {
    QpType type;
    SendOp op;
    const char* marked;  // link on which the data passes
  };
  for (const Case& one : {Case{QpType::kRc, SendOp::kWrite, "sw_0-mb_1"},
                          Case{QpType::kRc, SendOp::kRead, "sw_0-mb_0"},
                          Case{QpType::kUc, SendOp::kWrite, "sw_0-mb_1"},
                          Case{QpType::kUd, SendOp::kSend, "sw_0-mb_1"}}) {
    INFO(name(one.type) << " " << one.marked);
    Pair pair(one.type);
    Meddler marker(pair.world, pair.world.link(one.marked), 1, {});
    marker.script = [&](const wire::Parsed& parsed, Packet& packet) {
      if (is_data(parsed)) mark(packet);
      return false;
    };
    bool reads = one.op == SendOp::kRead;
    CnpWatch watch(pair.world, reads ? "mb_0-sw_0" : "mb_1-sw_0");
    set_ecn((reads ? pair.link.near_device : pair.link.far_device).port(),
            {{"roce_np/cnp_dscp", "46"}});
    if (one.type == QpType::kUd) pair.link.post(pair.link.receive(1, 0, 300));
    SendRequest request = pair.link.write(1, 0, 200);
    request.op = one.op;
    pair.link.post(request);
    pair.run();
    pair.world.scheduler.run_until(pair.world.scheduler.now() + kMillisecond);
    REQUIRE(watch.all.size() == 1);
    const wire::Headers& cnp = watch.all[0];
    CHECK(cnp.bth.dest_qpn == (reads ? pair.link.far : pair.link.near)->number());
    CHECK(cnp.bth.becn);
    CHECK(cnp.v4.tos == 46 << 2);
    const PortSpec& sender = (reads ? pair.link.far_device : pair.link.near_device).port().spec();
    CHECK(cnp.v4.dst == sender.ipv4);
  }
}

TEST_CASE("NP: a PAUSE of the CNPs' priority stops them, whatever their DSCP") {
  for (bool paused : {true, false}) {
    Pair pair;
    set_ecn(pair.link.far_device.port(),
            {{"roce_np/cnp_dscp", "0"}, {"roce_np/cnp_802p_prio", paused ? "5" : "4"}});
    Meddler marker(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
    marker.script = [](const wire::Parsed&, Packet& packet) {
      mark(packet);
      return false;
    };
    Link& from_switch = pair.world.link("sw_0-mb_1");
    from_switch.send_pause(5, true);
    pair.link.post(pair.link.write(1, 0, 100));
    pair.world.scheduler.run_until(pair.world.scheduler.now() + kMillisecond);
    CHECK(pair.far().np_cnp_sent.get() == !paused);
    from_switch.send_pause(5, false);
    pair.world.scheduler.run_until(pair.world.scheduler.now() + kMillisecond);
    CHECK(pair.far().np_cnp_sent.get() == 1);
  }
}

TEST_CASE("NP: marked answers are counted, and get no CNP") {
  Pair pair;
  Meddler marker(pair.world, pair.world.link("sw_0-mb_0"), 1, {});
  marker.script = [](const wire::Parsed&, Packet& packet) {
    mark(packet);
    return false;
  };
  CHECK(pair.outcome(pair.link.write(1, 0, 100)) == WcStatus::kSuccess);
  CHECK(pair.near().np_ecn_marked_roce_packets.get() == 1);
  CHECK(pair.near().np_cnp_sent.get() == 0);
}

TEST_CASE("NP: a disabled priority gets no CNPs, and its marks are counted") {
  for (uint8_t priority : {uint8_t{0}, uint8_t{3}}) {
    Pair pair;
    set_class(pair.link.near_device.port(), std::to_string(priority << 5));
    set_ecn(pair.link.far_device.port(), {{"roce_np/enable/3", "0"}});
    Meddler marker(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
    marker.script = [](const wire::Parsed&, Packet& packet) {
      mark(packet);
      return false;
    };
    CHECK(pair.outcome(pair.link.write(1, 0, 100)) == WcStatus::kSuccess);
    CHECK(pair.far().np_ecn_marked_roce_packets.get() == 1);
    CHECK(pair.far().np_cnp_sent.get() == (priority == 3 ? 0 : 1));
  }
}

TEST_CASE("NP: a CNP that is being built is dropped when its device leaves, and by a reset") {
  for (bool leaves : {true, false}) {
    Pair pair;
    set_ecn(pair.link.far_device.port(), {{"roce_np/processing_delay", "1ms"}});
    Meddler marker(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
    marker.script = [](const wire::Parsed&, Packet& packet) {
      mark(packet);
      return false;
    };
    pair.link.post(pair.link.write(1, 0, 100));
    pair.world.scheduler.run_until(100 * kMicrosecond);
    CHECK(pair.world.outstanding.packets == 1);
    if (leaves) {
      for (Port* port : {&pair.link.far_device.port()}) port->cnps().clear();
    } else {
      pair.world.fabric.reset();
    }
    pair.world.scheduler.run_until(3 * kMillisecond);
    CHECK(pair.far().np_cnp_sent.get() == 0);
    CHECK(pair.world.outstanding.packets == 0);
  }
}
