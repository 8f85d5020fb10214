// Packets on a link: their order, and the time at which each arrives.
#include <catch2/catch.hpp>
#include <vector>

#include "rdma/fabric/in_flight.h"
#include "test/rdma/world.h"

namespace rocefs::test {

TEST_CASE("in flight: packets leave in order, each with its arrival, however many there are") {
  World world;
  InFlight::FirstSlots slots;
  InFlight flights(slots);
  CHECK(flights.empty());
  CHECK(flights.advance() == kNever);
  // From none to 40 and back, so that the ring grows while it is turned.
  std::vector<const Packet*> order;
  size_t left = 0;
  TimeNs arrival = 0;
  auto push = [&] {
    PacketPtr packet = world.fabric.pool().acquire();
    order.push_back(packet.get());
    flights.push(std::move(packet), ++arrival);
    if (order.size() - left > 1) CHECK(flights.last_arrival() == arrival);
  };
  auto pop = [&] {
    CHECK(flights.front() == order[left]);
    const bool more = order.size() - left > 1;
    CHECK(flights.more() == more);
    CHECK(flights.second() == (more ? order[left + 1] : nullptr));
    PacketPtr packet = flights.pop();
    CHECK(packet.get() == order[left++]);
    CHECK(flights.advance() == (more ? static_cast<TimeNs>(left + 1) : kNever));
  };
  for (size_t round = 1; round <= 20; ++round) {
    for (size_t i = 0; i < 3; ++i) push();
    pop();
  }
  while (left < order.size()) pop();
  CHECK(flights.empty());
  for (size_t i = 0; i < 10; ++i) push();
  flights.clear();
  CHECK(flights.empty());
}

}  // namespace rocefs::test
