// GIDs of a port by index: what is found, and what is not after it has gone.
#include "rdma/nic/gid_table.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace rocefs;

namespace {

Ip address(uint8_t subnet, uint8_t host) {
  Ip ip{};
  ip[10] = ip[11] = 0xff;
  ip[12] = 10;
  ip[14] = subnet;
  ip[15] = host;
  return ip;
}

}  // namespace

TEST_CASE("GID table: has exactly the addresses that were added and not removed") {
  GidTable table(std::vector<Ip>{address(0, 1)});
  CHECK(table.has(address(0, 1)));
  CHECK_FALSE(table.has(address(0, 2)));
  CHECK_FALSE(table.has(address(1, 1)));   // the same last octet
  CHECK_FALSE(table.has(address(0, 65)));  // equal modulo 64
  CHECK_FALSE(table.has(Ip{}));

  CHECK(table.add(address(1, 1)));
  CHECK_FALSE(table.add(address(1, 1)));
  CHECK(table.add(address(0, 66)));
  CHECK(table.has(address(0, 66)));
  CHECK_FALSE(table.has(address(0, 2)));

  CHECK(table.remove(address(0, 1)));
  CHECK_FALSE(table.has(address(0, 1)));
  CHECK(table.has(address(1, 1)));
  CHECK(table.add(address(0, 2)));
  CHECK(table.index_of(address(0, 2)) == 0);  // the first empty place
  CHECK(table.has(address(0, 66)));
}
