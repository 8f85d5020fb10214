#include "rdma/packet/traffic_class.h"

#include <catch2/catch.hpp>

#include "rdma/cc/cnp.h"
#include "rdma/wire/packet.h"
#include "test/rdma/world.h"

namespace rocefs::test {
namespace {

Ip v6(uint8_t last) {
  Ip ip{0x20, 0x01, 0x0d, 0xb8};
  ip[15] = last;
  return ip;
}

}  // namespace

TEST_CASE("traffic class: a congestion mark leaves the packet valid, in both families") {
  World world;
  for (bool ipv6 : {false, true}) {
    for (int dscp = 0; dscp < 64; ++dscp) {
      auto traffic_class = static_cast<uint8_t>(dscp << 2 | 2);
      CnpAddress address{ipv6 ? v6(1) : mapped_ipv4({10, 77, 0, 1}),
                         ipv6 ? v6(2) : mapped_ipv4({10, 77, 0, 2}), 17, 0xc000, traffic_class};
      PacketPtr packet = make_cnp(world.fabric.pool(), address);
      CHECK(ecn_of(*packet) == Ecn::kCapable0);
      CHECK(priority_of(*packet) == static_cast<size_t>(dscp) / 8);
      mark_congested(*packet);
      CHECK(ecn_of(*packet) == Ecn::kCongested);
      REQUIRE(materialize(*packet));
      std::vector<uint8_t> bytes(packet->header_bytes().begin(), packet->header_bytes().end());
      bytes.insert(bytes.end(), packet->frame->bytes.begin(), packet->frame->bytes.begin() + 4);
      wire::Parsed parsed;  // checks the IPv4 header's checksum
      REQUIRE(wire::parse(bytes, parsed) == wire::ParseError::kNone);
      CHECK(parsed.headers.bth.opcode == wire::Opcode::kCnp);
      CHECK(parsed.headers.bth.dest_qpn == 17);
      uint8_t marked = ipv6 ? parsed.headers.v6.traffic_class : parsed.headers.v4.tos;
      CHECK(marked == (traffic_class | 3));
    }
  }
}

}  // namespace rocefs::test
