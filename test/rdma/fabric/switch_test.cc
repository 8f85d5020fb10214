// The switch's queues, its buffer, and the rules of its knobs.
#include "rdma/fabric/switch.h"

#include "rdma/cc/cnp.h"
#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Records the priorities of delivered packets, and passes them on.
struct Arrivals final : LinkSink {
  World& world;
  LinkSink& far;
  std::vector<size_t> priorities;
  uint64_t congested = 0;
  Arrivals(World& w, const std::string& link) : world(w), far(w.link(link).sink()) {
    world.link(link).set_sink(*this);
  }
  void receive(Packet* arriving, TimeNs now) override {
    PacketPtr packet(arriving);
    priorities.push_back(priority_of(*packet));
    congested += ecn_of(*packet) == Ecn::kCongested;
    far.receive(packet.release(), now);
  }
};

}  // namespace

TEST_CASE("switch: priorities 7 and 6 go first, the others in round robin") {
  Star star(2);
  Arrivals arrivals(star, "s-h2");
  // All in one instant, before the link asks for the first.
  for (size_t priority : {0, 0, 0, 0, 3, 3, 5, 6, 7, 7, 3}) star.arrive(1, 2, {priority});
  REQUIRE(star.run_idle());
  CHECK(arrivals.priorities == std::vector<size_t>{7, 7, 6, 0, 3, 5, 0, 3, 0, 3, 0});
}

TEST_CASE("switch: a paused priority waits, and another one passes it") {
  Star star(2);
  Arrivals arrivals(star, "s-h2");
  star.pause(2, 3);
  for (size_t priority : {3, 3, 1}) star.arrive(1, 2, {priority});
  star.scheduler.run_until(star.scheduler.now() + kMillisecond);
  CHECK(arrivals.priorities == std::vector<size_t>{1});
  CHECK(star.queue(2, 3).packets.get() == 2);
  CHECK(star.queue(2, 3).bytes.get() == 2 * kFullPacket);
  CHECK(star.link("s-h2").pause_state(3).counters.pause_received.get() == 1);
  CHECK(star.link("s-h2").pause_state(3).paused.get() == 1);
  star.pause(2, 3, false);
  REQUIRE(star.run_idle());
  CHECK(arrivals.priorities == std::vector<size_t>{1, 3, 3});
  CHECK(star.link("s-h2").pause_state(3).paused.get() == 0);
  CHECK(star.queue(2, 3).packets.get() == 0);
  CHECK(star.queue(2, 3).peak.get() == 2 * kFullPacket);
}

TEST_CASE("switch: a packet that exceeds the buffer is dropped, and counted at its ingress") {
  Star star(3);
  star.knobs.set("buffer/size", "10000");
  star.pause(3, 0);
  star.pause(3, 1);
  star.arrive(1, 3);
  star.arrive(2, 3, {1});
  CHECK(star.hub.used().get() == 2 * kFullPacket);
  star.arrive(2, 3, {1});
  CHECK(star.egress_counters(3, 1).dropped.get() == 1);
  CHECK(star.link("h2-s").losses().overflowed.get() == 1);
  CHECK(star.link("h1-s").losses().overflowed.get() == 0);
  CHECK(star.hub.used().get() == 2 * kFullPacket);
  CHECK(star.hub.peak().get() == 2 * kFullPacket);
  star.pause(3, 0, false);
  star.pause(3, 1, false);
  REQUIRE(star.run_idle());
  CHECK(star.hub.used().get() == 0);
  CHECK(star.received(3) == 2);
}

TEST_CASE("switch: the octets stored from each port, and their maximum") {
  Star star(3);
  star.pause(3, 0);
  star.pause(3, 1);
  star.arrive(1, 3);
  star.arrive(2, 3);
  star.arrive(2, 3, {1});
  CHECK(star.hub.port(0).ingress.bytes.get() == kFullPacket);
  CHECK(star.hub.port(1).ingress.bytes.get() == 2 * kFullPacket);
  star.pause(3, 0, false);
  star.pause(3, 1, false);
  REQUIRE(star.run_idle());
  star.arrive(2, 3);
  REQUIRE(star.run_idle());
  for (size_t port : {0, 1, 2}) CHECK(star.hub.port(port).ingress.bytes.get() == 0);
  CHECK(star.hub.port(0).ingress.peak.get() == kFullPacket);
  CHECK(star.hub.port(1).ingress.peak.get() == 2 * kFullPacket);
  CHECK(star.hub.port(2).ingress.peak.get() == 0);
}

TEST_CASE("switch: a drop is counted by the room that the packet lacked") {
  struct Case {
    const char* link;
    uint64_t LinkParameters::*limit;  // has room for one packet
    Counter RoomCounters::*room;
  };
  for (const Case& one :
       {Case{"h1-s", &LinkParameters::ingress_buffer_bytes, &RoomCounters::ingress_buffer},
        Case{"s-h3", &LinkParameters::buffer_bytes, &RoomCounters::egress_buffer}}) {
    INFO(one.link);
    Star star(3);
    LinkParameters parameters = star.link(one.link).parameters();
    parameters.*one.limit = 5000;
    test::set(star.link(one.link), parameters);
    star.pause(3, 0);
    star.arrive(1, 3);
    star.arrive(1, 3);
    uint64_t all = 0;
    for (const auto& row : kRoomCounters) all += (star.hub.drops().*row.member).get();
    CHECK((star.hub.drops().*one.room).get() == 1);
    CHECK(all == 1);
    CHECK(star.link(one.link).losses().overflowed.get() == 1);
  }
}

TEST_CASE("switch: a link's two buffers are those of the switches at its ends") {
  Star star(3);
  for (const char* name : {"h1-s", "s-h3"}) {
    LinkParameters parameters = star.link(name).parameters();
    (name[0] == 's' ? parameters.ingress_buffer_bytes : parameters.buffer_bytes) = 0;
    test::set(star.link(name), parameters);
  }
  star.arrive(1, 3);
  CHECK(star.dropped() == 0);
}

TEST_CASE("switch: without PFC, a packet that finds the buffer full lacked that") {
  Star star(3);
  star.knobs.set("pfc/enable", "0").set("buffer/size", "10000");
  star.pause(3, 0);
  for (int i = 0; i < 3; ++i) star.arrive(1, 3);
  CHECK(star.dropped() == 1);
  CHECK(star.hub.drops().switch_buffer.get() == 1);
  CHECK(star.hub.drops().pfc_headroom.get() == 0);
}

TEST_CASE("switch: a packet of the switch itself goes to its address, and counts for no ingress") {
  Star star(2);
  Ip to = mapped_ipv4({10, 77, 0, 1}), from = mapped_ipv4({10, 77, 0, 2});
  CnpAddress address;
  address.from = from;
  address.to = to;
  address.traffic_class = 6 << 5;
  star.pause(1, 6);
  CHECK(star.hub.send(make_cnp(star.fabric.pool(), address), star.scheduler.now()));
  CHECK(star.queue(1, 6).bytes.get() > 0);
  for (unsigned host : {1, 2}) CHECK(star.ingress(host).stored[6] == 0);
  star.pause(1, 6, false);
  REQUIRE(star.run_idle());
  CHECK(star.received(1) == 1);
  address.to = mapped_ipv4({1, 2, 3, 4});
  CHECK_FALSE(star.hub.send(make_cnp(star.fabric.pool(), address), star.scheduler.now()));
  CHECK(star.fabric.counters().unroutable.get() == 1);
  CHECK(star.outstanding.packets == 0);
}

TEST_CASE("switch: an observer sees the ingress and the egress of each packet") {
  Star star(3);
  struct Seen final : SwitchObserver {
    std::vector<std::array<size_t, 3>> all;
    void enqueued(const Packet& packet, size_t ingress, size_t egress, TimeNs) override {
      all.push_back({ingress, egress, priority_of(packet)});
    }
  } seen;
  star.hub.set_observer(&seen);
  star.arrive(1, 3, {2});
  star.arrive(3, 2, {5});
  CHECK(seen.all == std::vector<std::array<size_t, 3>>{{0, 2, 2}, {2, 1, 5}});
}

TEST_CASE("switch: a reset empties the queues, ends all PAUSE and restarts the random numbers") {
  auto run = [](Star& star) {
    star.knobs.set("ecn/enable", "1").set("ecn/kmin", "0").set("ecn/pmax", "0.5");
    Arrivals arrivals(star, "s-h2");
    for (int i = 0; i < 40; ++i) star.arrive(1, 2, {0, Ecn::kCapable0});
    REQUIRE(star.run_idle());
    star.link("s-h2").set_sink(arrivals.far);
    return arrivals.congested;
  };
  Star star(2);
  uint64_t first = run(star);
  CHECK(first > 0);
  star.pause(2, 0);
  star.knobs.set("pfc/mode", "static").set("pfc/threshold", "20K");
  for (int i = 0; i < 20; ++i) star.arrive(1, 2);
  star.link("h2-s").send_pause(4, true);  // under way
  CHECK(star.ingress(1).pausing);
  star.fabric.reset();
  CHECK(star.outstanding.packets == 0);
  CHECK(star.hub.used().get() == 0);
  CHECK(star.queue(2).bytes.get() == 0);
  CHECK(star.queue(2).packets.get() == 0);
  CHECK_FALSE(star.ingress(1).pausing);
  CHECK(star.ingress(1).stored[0] == 0);
  star.scheduler.run_until(star.scheduler.now() + kMillisecond);
  for (const char* link : {"s-h1", "s-h2", "h1-s", "h2-s"}) CHECK(star.link(link).paused() == 0);
  star.knobs.set("pfc/mode", "dynamic").set("pfc/threshold", "0");
  CHECK(run(star) == first);
}

TEST_CASE("switch: a value that breaks a rule between knobs is refused, and changes nothing") {
  Star star(32);
  // The paper's switch: 12 MB, 32 ports, 22.4 KB of headroom: t_PFC is at most 24.475 KB.
  star.knobs.set("buffer/size", "12000000").set("pfc/headroom", "22400");
  struct Refusal {
    const char *path, *text, *reason;
  };
  for (const Refusal& one : std::initializer_list<Refusal>{
           {"ecn/kmin", "300K", "ecn/kmin 307200 is above ecn/kmax 204800"},
           {"ecn/kmax", "4K", "ecn/kmin 5120 is above ecn/kmax 4096"},
           {"pfc/threshold", "24476",
            "pfc/threshold 24476 is above its bound 24475: (buffer/size - 8 n headroom)/(8 n) with "
            "32 ports"},
           {"pfc/headroom", "50000",
            "pfc/headroom 50000 for 32 ports of 8 priorities is more than buffer/size 12000000"}}) {
    INFO(one.path);
    SwitchSettings before = star.hub.settings();
    Result<void> stored = star.knobs.store(one.path, one.text);
    REQUIRE_FALSE(stored);
    CHECK(stored.error().code == EINVAL);
    CHECK(stored.error().reason == one.reason);
    CHECK(star.hub.settings().ecn.kmin == before.ecn.kmin);
    CHECK(star.hub.settings().pfc.threshold == before.pfc.threshold);
  }
  star.knobs.set("pfc/threshold", "24475");
  // A smaller buffer would leave that threshold above its bound.
  CHECK_FALSE(star.knobs.store("buffer/size", "11999000"));
}

TEST_CASE("switch: a Kmin above its bound is accepted with a warning while ECN and PFC are on") {
  Star star(32);
  std::vector<std::string> warnings;
  star.hub.set_warning([&](const std::string& text) { warnings.push_back(text); });
  star.knobs.set("buffer/size", "12000000").set("pfc/headroom", "22400");
  CHECK(star.hub.plan().ecn_bound() == 21755);  // the paper's, at beta 8
  star.knobs.set("ecn/kmin", "21755");
  star.knobs.set("ecn/enable", "1");
  CHECK(warnings.empty());
  star.knobs.set("ecn/enable", "0").set("ecn/kmin", "21756");
  CHECK(warnings.empty());  // nothing is marked
  star.knobs.set("ecn/enable", "1");
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "s: ecn/kmin 21756 is above its bound 21755: PAUSE may come before the first mark");
  star.knobs.set("ecn/pmax", "0.5");
  CHECK(warnings.size() == 1);  // no new warning
  star.knobs.set("pfc/enable", "0").set("ecn/kmin", "30000");
  CHECK(warnings.size() == 1);
  star.knobs.set("pfc/enable", "1");
  CHECK(warnings.size() == 2);
  // Static: a port may fill n queues.
  star.knobs.set("pfc/mode", "static");
  CHECK(star.hub.plan().ecn_bound() == 24475 / 32);
}

TEST_CASE("switch: a lack of headroom for a link is reported") {
  Star star(2);
  std::vector<std::string> warnings;
  star.hub.set_warning([&](const std::string& text) { warnings.push_back(text); });
  LinkParameters parameters = star.link("h2-s").parameters();
  parameters.delay_ns = 10 * kMillisecond;
  set(star.link("h2-s"), parameters);
  REQUIRE(warnings.size() == 1);
  // 10 Gb/s for 10.001 ms, PAUSE behind a packet, and two packets; half of 12 MiB / 16.
  CHECK(warnings[0] ==
        "s: port 2 has PFC headroom 393216, its link calls for 12513928: packets that come after "
        "PAUSE may be lost");
  set(star.link("h2-s"), parameters);
  CHECK(warnings.size() == 1);
}

TEST_CASE("switch: ports with the same lack of headroom are reported in one line") {
  Star star(6);
  for (const char* name : {"h1-s", "h2-s", "h3-s", "h5-s"}) {
    LinkParameters parameters = star.link(name).parameters();
    parameters.delay_ns = 10 * kMillisecond;
    set(star.link(name), parameters);
  }
  std::vector<std::string> warnings;
  star.hub.set_warning([&](const std::string& text) { warnings.push_back(text); });
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "s: ports 1-3,5 have PFC headroom 131072, their links call for 12513928: packets that come "
        "after PAUSE may be lost");
}
