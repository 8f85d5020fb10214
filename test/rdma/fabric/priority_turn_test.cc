// Shares of the priorities of a port.
#include "rdma/fabric/priority_turn.h"

#include <catch2/catch.hpp>
#include <vector>

#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Priorities that always have packets of a length each.
struct Backlog {
  PriorityTurn turn;
  std::array<uint64_t, kPriorities> length{}, octets{};

  size_t transmit(uint8_t ready) {
    size_t priority = turn.next(ready);
    turn.sent(priority, length[priority]);
    octets[priority] += length[priority];
    return priority;
  }
};

}  // namespace

TEST_CASE("priority turn: 7 and 6 are strict, equal packets of the others take turns") {
  Backlog backlog;
  backlog.length.fill(1000);
  for (int i = 0; i < 100; ++i) {
    CHECK(backlog.transmit(0xff) == 7);
    CHECK(backlog.transmit(0x7f) == 6);
  }
  for (size_t i = 0; i < 24; ++i) CHECK(backlog.transmit(0x3f) == i % 6);
  for (size_t i = 0; i < 24; ++i) CHECK(backlog.transmit(0x2a) == 1 + i % 3 * 2);
}

TEST_CASE("priority turn: shares are equal by octets, whatever the packets' lengths") {
  Backlog backlog;
  backlog.length = {4178, 338, 64, 1500, 9038, 102, 0, 0};
  for (uint8_t ready : {0x03, 0x30, 0x3f}) {
    INFO(int{ready});
    backlog.octets.fill(0);
    for (int i = 0; i < 20'000; ++i) {
      backlog.transmit(ready);
      uint64_t least = ~uint64_t{0}, most = 0;
      for (size_t priority = 0; priority < 6; ++priority) {
        if (!(ready >> priority & 1)) continue;
        least = std::min(least, backlog.octets[priority]);
        most = std::max(most, backlog.octets[priority]);
      }
      // Two packets of the longest: one by which it is ahead, and one of the time before.
      REQUIRE(most - least <= 2 * 9038);
    }
  }
}

TEST_CASE("priority turn: one that was idle has neither saved up nor lost its share") {
  Backlog backlog;
  backlog.length = {1000, 1000};
  for (int i = 0; i < 1000; ++i) backlog.transmit(0x01);
  backlog.octets.fill(0);
  for (int i = 0; i < 100; ++i) backlog.transmit(0x03);
  CHECK(backlog.octets[0] == 50'000);
  CHECK(backlog.octets[1] == 50'000);
}

TEST_CASE("priority turn: a port gives long and short packets the same octets") {
  Star star(3);
  Blaster longer(star, 1, 3, "h1-s"), shorter(star, 2, 3, "h2-s");
  longer.send({.priority = 0}, 2000);
  shorter.send({.priority = 1, .payload = 256}, 60'000);
  star.scheduler.run_until(4 * kMillisecond);
  REQUIRE(longer.left(0) > 0);
  REQUIRE(shorter.left(1) > 0);
  const double half = 4e-3 * 10e9 / 8 / 2;
  const double length = 256 + 44 + kEthernetOverhead;
  const auto waits = static_cast<double>(star.queue(3, 1).packets.get());
  const double sent = (static_cast<double>(60'000 - shorter.left(1)) - waits) * length;
  CHECK(sent == Approx(half).epsilon(0.02));
}
