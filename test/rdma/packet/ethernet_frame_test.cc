// Ethernet frames as packets: the priority and the ECN field that the fabric sees.
#include "rdma/packet/ethernet_frame.h"

#include <catch2/catch.hpp>

#include "rdma/packet/traffic_class.h"
#include "rdma/wire/bytes.h"
#include "test/rdma/world.h"

namespace rocefs::test {
namespace {

std::vector<uint8_t> frame_of(uint16_t type, std::initializer_list<uint8_t> data) {
  std::vector<uint8_t> frame(kEthernetHeader, 2);
  wire::store16(&frame[12], type);
  frame.insert(frame.end(), data);
  frame.resize(kEthernetHeader + 60);
  return frame;
}

}  // namespace

TEST_CASE("Ethernet frame: its priority is that of the DSCP, of a VLAN tag, or best effort") {
  World world;
  auto frame = [&](uint16_t type, std::initializer_list<uint8_t> data) {
    return packet_of_frame(world.fabric.pool(), frame_of(type, data));
  };
  CHECK(priority_of(*frame(kTypeIpv4, {0x45, 0xb8})) == 5);
  CHECK(priority_of(*frame(kTypeArp, {0, 1, 8, 0})) == 0);
  for (uint8_t priority = 0; priority < 8; ++priority) {
    // The tag's other bits, DEI and a VLAN identifier of ones, are neither class nor ECN.
    auto tag = static_cast<uint8_t>(priority << 5 | 0x1f);
    PacketPtr tagged = frame(kTypeVlan, {tag, 0xff, 8, 0, 0x45, 0x03});
    CHECK(priority_of(*tagged) == priority);
    CHECK(ecn_of(*tagged) == Ecn::kNotCapable);
    CHECK(priority_of(*copy_of(*tagged)) == priority);
    CHECK(tagged->header_len == 0);
  }
}

}  // namespace rocefs::test
