// Lines of hosts/NAME/interfaces, and which addresses an interface reaches.
#include "rdma/host/interface_line.h"

#include <cerrno>

#include "test/catch.h"

using namespace rocefs;

TEST_CASE("interface line: name, MAC, MTU and addresses") {
  auto line = parse_interface(
      "enp3s0 mac=02:00:4c:6d:62:01 mtu=4192 speed=25000 ip=10.77.0.1/24 ip6=fd00::1/64");
  REQUIRE(line);
  CHECK(line->name == "enp3s0");
  CHECK(line->mac == std::array<uint8_t, 6>{2, 0, 0x4c, 0x6d, 0x62, 1});
  CHECK(line->mtu == 4192);
  REQUIRE(line->addresses.size() == 2);
  CHECK(line->addresses[0].text == "10.77.0.1");
  CHECK(line->addresses[0].prefix == 24);
  CHECK(line->addresses[1].ipv6);
  CHECK(line->addresses[1].bytes[0] == 0xfd);
  CHECK(parse_interface("e mtu=100 later=thing"));
}

TEST_CASE("interface line: malformed ones are refused") {
  for (const char* text :
       {"", "enp3s0", "enp3s0 mtu=0", "enp3s0 mtu=x", "enp3s0 mtu=1500 mac=02:00",
        "e mtu=9 ip=10.77.0.1", "e mtu=9 ip=10.77.0.1/33", "e mtu=9 ip6=fd00::1/129",
        "e mtu=9 ip=10.77.0.999/24", "e mtu=9 word", "e mtu=9 mac=02:00:4c:6d:62:01:07"}) {
    INFO(text);
    auto line = parse_interface(text);
    REQUIRE_FALSE(line);
    CHECK(line.error().code == EINVAL);
  }
}

TEST_CASE("interface line: a network covers addresses with its prefix") {
  auto address = [](const std::string& text) {
    return parse_interface("e mtu=9 " + text)->addresses.at(0);
  };
  InterfaceAddress net = address("ip=10.77.0.1/23");
  CHECK(net.covers(address("ip=10.77.1.200/24")));
  CHECK_FALSE(net.covers(address("ip=10.77.2.1/24")));
  CHECK_FALSE(net.covers(address("ip6=fd00::1/64")));
  CHECK(address("ip=10.0.0.1/0").covers(address("ip=192.168.0.1/24")));
}

TEST_CASE("interface line: networks of others that a host has no address in are reached directly") {
  auto line = [](const std::string& text) { return *parse_interface("e mtu=9 " + text); };
  const std::vector<InterfaceLine> own = {line("ip=10.77.0.1/24"), line("ip=10.77.1.1/24")};
  auto beyond = networks_beyond(own, {line("ip=10.77.0.2/24"), line("ip=10.77.1.2/24"),
                                      line("ip=10.77.2.2/24 ip6=fd00::1/64"),
                                      line("ip=10.77.2.200/24"), line("ip=192.168.7.1/24")});
  REQUIRE(beyond.size() == 2);  // no IPv6 address of its own: no way to one
  CHECK(beyond[0].prefix == 24);
  CHECK(beyond[0].bytes == std::array<uint8_t, 16>{10, 77, 2, 0});
  CHECK(beyond[1].bytes == std::array<uint8_t, 16>{192, 168, 7, 0});
}
