// Destinations kept in packets: they hold until the table changes.
#include "rdma/fabric/destination_table.h"

#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Address of packet_between()'s host.
Ip ip_of(uint8_t host) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, host};
}

}  // namespace

TEST_CASE("destinations: a packet that was looked up follows a destination that moves") {
  World world;
  PacketPtr packet = packet_between(world, 1, 3, {});
  const Ip to = ip_of(3);
  DestinationTable table;
  CHECK(table.find(*packet) == nullptr);
  table.set(to, {4, 7});
  CHECK_FALSE(table.found(*packet));
  REQUIRE(table.find(*packet));
  CHECK(table.find(*packet)->hub == 4);
  CHECK(table.found(*packet));

  table.set(to, {5, 8});
  CHECK_FALSE(table.found(*packet));
  REQUIRE(table.find(*packet));
  CHECK(table.find(*packet)->hub == 5);
  CHECK(table.find(*packet)->port == 8);
}

TEST_CASE("destinations: a packet that is used again is looked up again") {
  World world;
  DestinationTable table;
  const Packet* used = nullptr;
  {
    PacketPtr packet = packet_between(world, 1, 3, {});
    table.set(ip_of(3), {4, 7});
    CHECK(table.find(*packet));
    used = packet.get();
  }
  PacketPtr packet = packet_between(world, 1, 2, {});
  CHECK(packet.get() == used);
  CHECK(table.find(*packet) == nullptr);
}
