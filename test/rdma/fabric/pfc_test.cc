// PFC: pauses, their duration and their cost.
#include "test/rdma/star.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t k10G = 10'000'000'000, k100G = 100'000'000'000;

// Every host but the last sends `packets` of each priority to the last one, which keeps the others'
// links busy in the other direction, so that PAUSE has to wait.
struct Incast {
  Star star;
  std::vector<std::unique_ptr<Blaster>> senders;
  uint64_t sent = 0;

  Incast(unsigned hosts, uint64_t rate_bps, TimeNs delay = kMicrosecond) : star(hosts, rate_bps) {
    for (Link* link : star.fabric.links()) {
      LinkParameters parameters = link->parameters();
      parameters.delay_ns = delay;
      test::set(*link, parameters);
    }
    for (unsigned n = 1; n < hosts; ++n) {
      senders.push_back(std::make_unique<Blaster>(star, n, hosts, fmt::format("h{}-s", n)));
    }
    senders.push_back(std::make_unique<Blaster>(star, hosts, 1, fmt::format("h{}-s", hosts)));
  }
  void run(uint64_t packets, const std::vector<size_t>& priorities = {0}) {
    for (auto& sender : senders) {
      for (size_t priority : priorities) sender->send({priority}, packets);
    }
    REQUIRE(star.run_idle());
    sent = packets * priorities.size() * (senders.size() - 1);
  }
  uint64_t received() { return star.received(static_cast<unsigned>(senders.size())); }
  uint64_t pauses(size_t priority = 0) {
    uint64_t sum = 0;
    for (unsigned n = 1; n < senders.size(); ++n) {
      sum += star.link(fmt::format("h{}-s", n)).pause_state(priority).counters.pause_received.get();
    }
    return sum;
  }
};

// Two hosts, static threshold, the second's egress paused until the test resumes it.
struct Held : Star {
  explicit Held(const char* threshold = "40K") : Star(3) {
    knobs.set("pfc/mode", "static").set("pfc/threshold", threshold);
    pause(3, 0);
  }
  bool stopped(unsigned host, size_t priority = 0) {
    return link(fmt::format("h{}-s", host)).paused() >> priority & 1;
  }
  void pass(TimeNs time) { scheduler.run_until(scheduler.now() + time); }
};

// A queue pair between two hosts, of a traffic class, that writes.
struct Writer {
  static constexpr uint64_t kArea = 64 * 1024;
  World& world;
  Device &near_device, &far_device;
  CompletionQueue near_cq{512}, far_cq{512};
  uint32_t near_key, far_key;
  Qp *near, *far;

  Writer(World& w, const char* from, const char* to, uint8_t traffic_class)
      : world(w), near_device(w.device(from)), far_device(w.device(to)) {
    near_key = *near_device.memory().add(LocalMemory::create(kArea), 0x1000, kArea, 9, kLocalWrite);
    far_key = *far_device.memory().add(LocalMemory::create(kArea), 0x1000, kArea, 9,
                                       Connection::kAllRights);
    near = make(near_device, near_cq);
    far = make(far_device, far_cq);
    QpAttributes attributes;
    attributes.access = kRemoteWrite;
    attributes.path.traffic_class = traffic_class;
    Connection::raise(*near, *far, near_device, far_device, attributes);
    Connection::raise(*far, *near, far_device, near_device, attributes);
  }
  ~Writer() {
    near_device.destroy_qp(*near);
    far_device.destroy_qp(*far);
  }
  static Qp* make(Device& device, CompletionQueue& cq) {
    QpInit init;
    init.pd = 9;
    init.send_cq = init.receive_cq = &cq;
    return *device.create_qp(init);
  }
  void write() {
    SendRequest request;
    request.op = SendOp::kWrite;
    request.sges = Sge{0x1000, kArea, near_key};
    request.remote_address = 0x1000;
    request.rkey = far_key;
    REQUIRE(near->post(request));
  }
  size_t done() { return Connection::poll(near_cq).size(); }
};

}  // namespace

TEST_CASE("pfc: PAUSE is sent above the ingress threshold, RESUME two MTU below it") {
  Held held;
  constexpr uint64_t kThreshold = 40 << 10;
  while (held.ingress(1).stored[0] + kFullPacket <= kThreshold) held.arrive(1, 3);
  CHECK_FALSE(held.ingress(1).pausing);
  held.arrive(2, 3);  // from another ingress
  CHECK(held.pause_sent(1) == 0);
  held.arrive(1, 3);
  CHECK(held.ingress(1).pausing);
  CHECK(held.pause_sent(1) == 1);
  CHECK(held.pause_sent(2) == 0);
  held.pass(2 * kMicrosecond);
  CHECK(held.stopped(1));
  CHECK(held.link("h1-s").paused() == 1);  // no other priority
  CHECK_FALSE(held.stopped(2));
  held.pause(3, 0, false);
  while (held.ingress(1).stored[0] + 2 * kMaxPacket > kThreshold) {
    CHECK(held.ingress(1).pausing);
    REQUIRE(held.scheduler.run_one(kSecond));
  }
  CHECK_FALSE(held.ingress(1).pausing);
  CHECK(held.ingress(1).stored[0] > kThreshold - 2 * kMaxPacket - kFullPacket);
  held.pass(2 * kMicrosecond);
  CHECK_FALSE(held.stopped(1));
  REQUIRE(held.run_idle());
  CHECK(held.pause_sent(1) == 1);
}

TEST_CASE("pfc: PAUSE waits for the packet under way, not for those behind it") {
  constexpr TimeNs kPacketNs = 3343, kPauseNs = 52;  // 4178 and 64 octets at 10 Gb/s
  for (bool busy : {false, true}) {
    Held held;
    TimeNs begin = held.scheduler.now();
    if (busy) {
      for (int i = 0; i < 5; ++i) held.arrive(2, 1);
      held.pass(1);  // the first has begun
    }
    while (!held.ingress(1).pausing) held.arrive(1, 3);
    TimeNs due = begin + (busy ? kPacketNs : 0) + kPauseNs + kMicrosecond;
    held.scheduler.run_until(due - 2);
    CHECK_FALSE(held.stopped(1));
    held.scheduler.run_until(due + 1);
    CHECK(held.stopped(1));
  }
}

TEST_CASE("pfc: the dynamic threshold is beta/8 of the free shared buffer") {
  for (uint64_t beta : {1, 8}) {
    Star star(3);
    star.knobs.set("buffer/size", "2M").set("pfc/beta", std::to_string(beta));
    uint64_t headroom = headroom_of(star.link("h1-s").parameters(), star.link("s-h1").parameters());
    uint64_t shared = (2 << 20) - 8 * 3 * headroom;
    CHECK(star.hub.plan().shared == shared);
    star.pause(3, 0);
    uint64_t before = 0;
    while (!star.ingress(1).pausing) {
      before = star.ingress(1).stored[0];
      star.arrive(1, 3);
    }
    auto above = [&](uint64_t stored) { return stored > beta * (shared - stored) / 8; };
    CHECK(above(star.ingress(1).stored[0]));
    CHECK_FALSE(above(before));
  }
}

TEST_CASE("pfc: incast loses packets without PFC, and none with it") {
  for (uint64_t rate : {k10G, k100G}) {
    for (bool on : {true, false}) {
      INFO(rate << " PFC " << on);
      Incast incast(5, rate);
      incast.star.knobs.set("pfc/enable", on ? "1" : "0");
      incast.run(3000);  // three times what the buffer holds
      CHECK((incast.star.dropped() == 0) == on);
      CHECK((incast.received() == incast.sent) == on);
      CHECK((incast.pauses() > 0) == on);
      CHECK(incast.star.hub.used().get() == 0);
      for (Link* link : incast.star.fabric.links()) CHECK(link->paused() == 0);
    }
  }
}

TEST_CASE("pfc: no packet is lost at any rate, delay, mode or priority that the headroom covers") {
  struct Case {
    unsigned hosts;
    uint64_t rate;
    TimeNs delay;
    const char *mode, *buffer;
    std::vector<size_t> priorities;
  };
  for (const Case& one : std::initializer_list<Case>{
           {5, k100G, kMicrosecond, "static", "12M", {0}},
           {5, k100G, kMicrosecond, "dynamic", "12M", {0, 1, 2, 3, 4, 5, 6, 7}},
           {5, k100G, kMicrosecond, "static", "3M", {0, 3, 7}},
           {17, k100G, kMicrosecond, "dynamic", "12M", {0}},
           {5, k10G, 20 * kMicrosecond, "dynamic", "6M", {0, 1}},
           {5, k10G, 0, "static", "1M", {0}},
           {3, 400'000'000'000, 5 * kMicrosecond, "dynamic", "20M", {2}}}) {
    INFO(one.hosts << " hosts " << one.rate << " " << one.delay << " " << one.mode);
    Incast incast(one.hosts, one.rate, one.delay);
    incast.star.knobs.set("pfc/mode", one.mode).set("buffer/size", one.buffer);
    incast.run(30'000 / one.hosts, one.priorities);
    CHECK(incast.star.dropped() == 0);
    CHECK(incast.received() == incast.sent);
    CHECK(incast.pauses(one.priorities[0]) > 0);
  }
}

TEST_CASE("pfc: with too little headroom packets are lost") {
  Incast incast(5, k100G);
  incast.star.knobs.set("pfc/mode", "static").set("pfc/headroom", "10K");
  incast.run(3000);
  CHECK(incast.star.dropped() > 0);
  CHECK(incast.star.hub.drops().pfc_headroom.get() == incast.star.dropped());
  CHECK(incast.pauses() > 0);
  // Packets beyond the headroom are dropped, however much room the buffer has.
  CHECK(incast.star.hub.peak().get() < 12 << 20);
}

TEST_CASE("pfc: uncongested priorities of the same port are not paused") {
  Incast incast(5, k10G);
  for (auto& sender : incast.senders) sender->send({0}, 3000);
  Blaster& victim = *incast.senders[0];
  victim.send({3}, 200);
  REQUIRE(incast.star.run_idle());
  Link& link = incast.star.link("h1-s");
  CHECK(link.pause_state(0).counters.pause_received.get() > 0);
  CHECK(link.pause_state(3).counters.pause_received.get() == 0);
  CHECK(victim.left(3) == 0);
}

TEST_CASE("pfc: PAUSE spreads upstream switch by switch, and no packet is lost") {
  // h1, h2 - s - t - h3, whose link is slow.
  Topology topology = star(2, k10G);
  topology.devices.push_back(host(3));
  topology.switches.push_back({"t"});
  topology.links.push_back(cable("s", "t", k10G));
  topology.links.push_back(cable("t", "h3", k10G / 10));
  World world(1, topology);
  Blaster one(world, 1, 3, "h1-s"), two(world, 2, 3, "h2-s");
  for (Blaster* blaster : {&one, &two}) blaster->send({}, 8000);
  REQUIRE(world.run_idle());
  CHECK(world.link("s-t").pause_state(0).counters.pause_received.get() > 0);
  CHECK(world.link("h1-s").pause_state(0).counters.pause_received.get() > 0);
  CHECK(world.link("h2-s").pause_state(0).counters.pause_received.get() > 0);
  CHECK(world.counters("h3").port_rcv_packets.get() == 16'000);
}

TEST_CASE("pfc: a link that goes down clears the PAUSE state at both ends") {
  for (const char* name : {"h1-s", "s-h1"}) {
    INFO(name);
    Held held;
    while (!held.ingress(1).pausing) held.arrive(1, 3);
    held.pass(2 * kMicrosecond);
    held.pause(1, 5);
    CHECK(held.stopped(1));
    CHECK(held.link("s-h1").paused() != 0);
    held.turn(name, false);
    CHECK_FALSE(held.stopped(1));
    CHECK(held.link("s-h1").paused() == 0);
    CHECK(held.link("h1-s").pause_state(0).paused.get() == 0);
    CHECK_FALSE(held.ingress(1).pausing);
    held.turn(name, true);
    // Still above: the next packet makes the switch say so again.
    held.arrive(1, 3);
    CHECK(held.ingress(1).pausing);
    held.pass(2 * kMicrosecond);
    CHECK(held.stopped(1));
    held.pause(3, 0, false);
    REQUIRE(held.run_idle());
    held.pass(2 * kMicrosecond);
    CHECK_FALSE(held.stopped(1));
  }
}

TEST_CASE("pfc: PAUSE is lost on a link that is down or goes down") {
  for (bool before : {true, false}) {
    Held held;
    if (before) held.turn("s-h1", false);
    while (!held.ingress(1).pausing) held.arrive(1, 3);
    if (!before) held.turn("s-h1", false);
    held.pass(kMillisecond);
    CHECK_FALSE(held.stopped(1));
    CHECK(held.link("h1-s").pause_state(0).counters.pause_received.get() == 0);
  }
}

TEST_CASE("pfc: paused senders resume when PFC is turned off or its threshold raised") {
  for (bool off : {true, false}) {
    Held held;
    while (!held.ingress(1).pausing) held.arrive(1, 3);
    held.pass(2 * kMicrosecond);
    REQUIRE(held.stopped(1));
    held.knobs.set(off ? "pfc/enable" : "pfc/threshold", off ? "0" : "200K");
    held.pass(2 * kMicrosecond);
    CHECK_FALSE(held.stopped(1));
    held.arrive(1, 3);
    CHECK_FALSE(held.ingress(1).pausing);
  }
}

// The law is of octets; with packets a queue may be one short of t_ECN, and its mark one late.
TEST_CASE(
    "pfc: with Kmin below its bound marks come before PAUSE, with twice the bound they do not") {
  constexpr unsigned kHosts = 8;
  for (bool below : {true, false}) {
    Star star(kHosts);
    star.knobs.set("pfc/mode", "static").set("ecn/enable", "1").set("ecn/pmax", "1");
    uint64_t bound = star.hub.plan().ecn_bound();
    std::string kmin = std::to_string(below ? bound - 2 * kFullPacket : bound * 2);
    star.knobs.set("ecn/kmax", kmin).set("ecn/kmin", kmin);
    // Every queue fills alike from one port: no more is stored until a queue is at t_ECN.
    for (unsigned n = 1; n <= kHosts; ++n) star.pause(n, 0);
    auto marked = [&] {
      uint64_t sum = 0;
      for (unsigned n = 1; n <= kHosts; ++n) sum += star.egress_counters(n).marked.get();
      return sum;
    };
    unsigned to = 0;
    while (!star.ingress(1).pausing) star.arrive(1, to++ % kHosts + 1, {0, Ecn::kCapable0});
    CHECK((marked() > 0) == below);
  }
}

TEST_CASE("pfc: a NIC stops a paused priority after the packet under way, and sends others") {
  Star star(2);
  Writer low(star, "h1", "h2", 0), high(star, "h1", "h2", 3 << 5);
  CHECK(low.near->priority() == 0);
  CHECK(high.near->priority() == 3);
  low.write();
  star.scheduler.run_until(10 * kMicrosecond);
  star.link("s-h1").send_pause(0, true);
  star.scheduler.run_until(12 * kMicrosecond);
  uint64_t stopped_at = star.link("h1-s").counters().packets.get();
  star.scheduler.run_until(100 * kMicrosecond);
  CHECK(star.link("h1-s").counters().packets.get() <= stopped_at + 1);
  CHECK(low.done() == 0);
  high.write();
  star.scheduler.run_until(300 * kMicrosecond);
  CHECK(high.done() == 1);
  CHECK(low.done() == 0);
  star.link("s-h1").send_pause(0, false);
  REQUIRE(star.run_idle());
  CHECK(low.done() == 1);
}

TEST_CASE("pfc: acknowledgements of a paused priority wait too") {
  Star star(2);
  Writer writer(star, "h1", "h2", 2 << 5);
  star.link("s-h2").send_pause(2, true);
  writer.write();
  star.scheduler.run_until(200 * kMicrosecond);
  CHECK(star.counters("h2").port_rcv_packets.get() == 64);
  CHECK(star.counters("h2").port_xmit_packets.get() == 0);
  star.link("s-h2").send_pause(2, false);
  REQUIRE(star.run_idle());
  CHECK(writer.done() == 1);
}

TEST_CASE("counters: port_xmit_wait counts only while all that the port could transmit is paused") {
  Star star(2);
  Writer low(star, "h1", "h2", 0), high(star, "h1", "h2", 3 << 5);
  PortCounters& counters = star.counters("h1");
  star.link("s-h1").send_pause(0, true);
  star.scheduler.run_until(10 * kMicrosecond);
  star.scheduler.run_until(50 * kMicrosecond);
  low.write();
  star.scheduler.run_until(150 * kMicrosecond);
  star.link("s-h1").send_pause(0, false);
  REQUIRE(star.run_idle());
  // From the write at 50 us until RESUME has come, 52 ns and 1 us after 150 us; not before the
  // write, and not while the port was idle afterwards.
  CHECK(counters.port_xmit_wait.get() == 100 * 1000 + 1052);
  star.link("s-h1").send_pause(0, true);
  star.scheduler.run_until(star.scheduler.now() + 10 * kMicrosecond);
  high.write();  // another priority: it goes
  star.scheduler.run_until(star.scheduler.now() + 200 * kMicrosecond);
  CHECK(high.done() == 1);
  CHECK(counters.port_xmit_wait.get() == 100 * 1000 + 1052);
}

TEST_CASE("counters: paused_ns counts from PAUSE to RESUME, also while nothing waits") {
  Star star(2);
  const PauseState& state = star.link("h1-s").pause_state(0);
  star.link("s-h1").send_pause(0, true);  // arrives 1052 ns later
  star.scheduler.run_until(40 * kMicrosecond);
  star.link("s-h1").send_pause(0, true);  // it is paused already
  star.scheduler.run_until(100 * kMicrosecond);
  CHECK(state.counters.paused_ns.get() == 0);
  CHECK(state.paused_ns(star.scheduler.now()) == 100'000 - 1052);
  star.link("s-h1").send_pause(0, false);
  star.scheduler.run_until(200 * kMicrosecond);
  CHECK(state.counters.paused_ns.get() == 100'000);
  CHECK(state.paused_ns(star.scheduler.now()) == 100'000);
  CHECK(star.link("h1-s").pause_state(3).counters.paused_ns.get() == 0);
  CHECK(star.link("s-h1").pause_state(0).counters.paused_ns.get() == 0);
  star.link("s-h1").send_pause(0, true);
  star.scheduler.run_until(300 * kMicrosecond);
  star.turn("h1-s", false);  // forgets the pause
  CHECK(state.counters.paused_ns.get() == 200'000 - 1052);
}

TEST_CASE("pfc: a queue pair that is destroyed or reset while paused leaves nothing behind") {
  Star star(2);
  {
    Writer writer(star, "h1", "h2", 3 << 5);
    star.link("s-h1").send_pause(3, true);
    star.scheduler.run_until(5 * kMicrosecond);
    writer.write();
    star.scheduler.run_until(20 * kMicrosecond);
  }
  CHECK(star.counters("h1").port_xmit_wait.get() > 0);
  Writer other(star, "h1", "h2", 4 << 5);
  other.write();
  REQUIRE(star.run_idle());
  CHECK(other.done() == 1);
  Writer reset(star, "h1", "h2", 3 << 5);
  reset.write();
  star.scheduler.run_until(star.scheduler.now() + 5 * kMicrosecond);
  REQUIRE(reset.near->modify(QpState::kReset));
  CHECK(reset.near->priority() == 0);
  REQUIRE(star.run_idle());
}

TEST_CASE("pfc: a device that leaves while paused can transmit when it is back") {
  Star star(3);
  star.knobs.set("buffer/size", "1M");
  struct Run {
    std::string state = "running";
    Flow flow;
    Run(World& world, const FlowSpec& spec)
        : flow(world.fabric, spec, {}, std::make_shared<FlowStats>(), nullptr,
               [this](Result<void> result) { state = result ? "done" : result.error().reason; }) {
      REQUIRE(flow.start());
    }
  };
  FlowSpec spec;
  spec.from = "h1";
  spec.to = "h3";
  spec.window = 1024;
  spec.count = 200;
  Run one(star, spec);
  spec.from = "h2";
  Run two(star, spec);
  while (star.link("h1-s").paused() == 0) REQUIRE(star.scheduler.run_one(kSecond));
  star.device("h1").leave();
  CHECK(one.state == "device removed");
  star.device("h1").arrive();
  spec.from = "h1";
  Run again(star, spec);
  REQUIRE(star.run_idle());
  CHECK(two.state == "done");
  CHECK(again.state == "done");
  CHECK(star.dropped() == 0);
}

TEST_CASE("pfc: a datagram is paused by the priority of its own traffic class") {
  Pair pair(QpType::kUd);
  Link& towards = pair.world.link("sw_0-mb_0");
  towards.send_pause(5, true);
  pair.world.scheduler.run_until(10 * kMicrosecond);
  pair.link.post(pair.link.receive(1, 0, 1024));
  SendRequest request = pair.link.send(1, 0, 256);
  request.path.traffic_class = 5 << 5;
  pair.link.post(request);
  pair.world.scheduler.run_until(kMillisecond);
  CHECK(pair.near().port_xmit_packets.get() == 0);
  towards.send_pause(5, false);
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(pair.received().size() == 1);
}
