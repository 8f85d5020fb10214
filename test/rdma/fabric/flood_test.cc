// Packets that a switch copies to several ports: counted once, as a shared memory stores them.
#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t k10G = 10'000'000'000;
constexpr Flavour kToGroup{.group = true};

void set_rate(Link& link, uint64_t rate_bps) {
  LinkParameters parameters = link.parameters();
  parameters.rate_bps = rate_bps;
  test::set(link, parameters);
}

}  // namespace

TEST_CASE("flood: copies count once against ingress and buffer, until the last has left") {
  Star star(4);
  for (unsigned n : {2, 3, 4}) star.pause(n, 0);
  star.arrive(1, 0, kToGroup);
  auto stored = [&](unsigned copies) {
    const uint64_t length = copies > 0 ? kFullPacket : 0;
    CHECK(star.hub.used().get() == length);
    CHECK(star.ingress(1).stored[0] == length);
    CHECK(star.hub.port(0).ingress.bytes.get() == length);
    for (unsigned n : {2, 3, 4}) {
      CHECK(star.queue(n).bytes.get() == (n > 4 - copies ? kFullPacket : 0));
    }
  };
  stored(3);
  for (unsigned n : {2, 3, 4}) {
    star.pause(n, 0, false);
    stored(4 - n);
  }
  REQUIRE(star.run_idle());
  for (unsigned n : {2, 3, 4}) CHECK(star.received(n) == 1);
  CHECK(star.hub.peak().get() == kFullPacket);
}

TEST_CASE("flood: a port without room drops its copy alone") {
  for (unsigned full : {2, 3, 4}) {
    INFO(full);
    Star star(4);
    LinkParameters parameters = star.link(fmt::format("s-h{}", full)).parameters();
    parameters.buffer_bytes = kFullPacket - 1;
    test::set(star.link(fmt::format("s-h{}", full)), parameters);
    star.arrive(1, 0, kToGroup);
    CHECK(star.hub.used().get() == kFullPacket);
    REQUIRE(star.run_idle());
    for (unsigned n : {2, 3, 4}) CHECK(star.received(n) == (n != full));
    CHECK(star.egress_counters(full).dropped.get() == 1);
    CHECK(star.dropped() == 1);
    CHECK(star.hub.used().get() == 0);
    CHECK(star.ingress(1).stored[0] == 0);
  }
}

TEST_CASE("flood: nothing is stored of a packet that no port has room for, or after a reset") {
  Star star(4);
  star.knobs.set("pfc/enable", "0").set("buffer/size", std::to_string(kFullPacket - 1));
  star.arrive(1, 0, kToGroup);
  CHECK(star.dropped() == 3);
  CHECK(star.hub.used().get() == 0);
  star.knobs.set("buffer/size", "12M");
  for (unsigned n : {2, 3, 4}) star.pause(n, 0);
  star.arrive(1, 0, kToGroup);
  CHECK(star.hub.used().get() == kFullPacket);
  star.hub.reset();
  star.arrive(2, 0, kToGroup);
  CHECK(star.hub.used().get() == kFullPacket);
  CHECK(star.ingress(1).stored[0] == 0);
  for (unsigned n : {2, 3, 4}) star.pause(n, 0, false);
  REQUIRE(star.run_idle());
  CHECK(star.hub.used().get() == 0);
  CHECK(star.ingress(2).stored[0] == 0);
}

TEST_CASE("flood: PFC loses no packet to a group whose hosts are slow") {
  constexpr uint64_t kPackets = 6000;
  Star star(9);
  for (unsigned n = 2; n <= 9; ++n) set_rate(star.link(fmt::format("s-h{}", n)), k10G / 10);
  Blaster sender(star, 1, 0, "h1-s");
  sender.send(kToGroup, kPackets);
  REQUIRE(star.run_idle());
  CHECK(star.link("h1-s").pause_state(0).counters.pause_received.get() > 0);
  CHECK(star.dropped() == 0);
  for (unsigned n = 2; n <= 9; ++n) CHECK(star.received(n) == kPackets);
  CHECK(star.hub.used().get() == 0);
}
