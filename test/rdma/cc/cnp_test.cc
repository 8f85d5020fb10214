// The octets of a CNP.
#include "rdma/cc/cnp.h"

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

// As the example of annex A17.9.3 and NVIDIA's NICs have it: MigReq, too, is 0.
TEST_CASE("cnp: the headers behind UDP are the annex's") {
  World world;
  CnpAddress address;
  address.dest_qpn = 0xd2;
  address.from[10] = address.from[11] = address.to[10] = address.to[11] = 0xff;
  PacketPtr cnp = make_cnp(world.fabric.pool(), address);
  auto behind = cnp->header_bytes().subspan(wire::kIpv4Len + wire::kUdpLen);
  std::vector<uint8_t> expected(28);
  const uint8_t begin[] = {0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0xd2};
  std::copy(std::begin(begin), std::end(begin), expected.begin());
  CHECK(std::equal(behind.begin(), behind.end(), expected.begin(), expected.end()));
}
