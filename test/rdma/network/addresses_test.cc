// Devices by address, as a switch that tells senders of congestion looks for them.
#include "rdma/fabric/switch_npcc.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("addresses: a sender is found by those that its port has now, first and later ones") {
  World world;
  Connection connection(world, 4096);
  Device &near = world.device("mb_0"), &far = world.device("mb_1");
  const Ip first = gids_of(near.port().spec())[1], peer = gids_of(far.port().spec())[1];
  const Ip later = mapped_ipv4({10, 78, 1, 9});
  auto sender = [&](const Ip& source, std::optional<uint32_t> last = {}) {
    return world.fabric.npcc().front()->sender_of({source, peer, connection.far->number()}, last);
  };
  auto sends_from = [&](const Ip& local) {
    REQUIRE(connection.near->modify(QpState::kReset));
    QpAttributes attributes;
    attributes.remote_qpn = connection.far->number();
    attributes.path.local = local;
    attributes.path.remote = peer;
    REQUIRE(connection.near->bring_up(attributes));
  };
  auto add = [&](Device& device) {
    REQUIRE(device.add_gid(1, later));
    world.fabric.add_address(device.port(), later);
  };
  const std::optional<uint32_t> number = connection.near->number();
  CHECK(sender(first) == number);
  CHECK(sender(first, number) == number);
  CHECK(sender(first, *number + 1) == number);  // another sent it before, which has gone
  sends_from(later);
  CHECK_FALSE(sender(later));  // nobody has it

  add(near);
  CHECK(sender(later) == number);
  add(far);  // two have it
  CHECK_FALSE(sender(later));
  REQUIRE(far.remove_gid(1, later));
  CHECK(sender(later) == number);
  REQUIRE(near.remove_gid(1, later));
  CHECK_FALSE(sender(later));
}
