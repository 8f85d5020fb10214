// Messages of rtnetlink about interfaces: what is told, and malformed ones.
#include "rdma/host/route_messages.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "rdma/wire/ip_text.h"
#include "test/catch.h"

using namespace rocefs;

namespace {

class Notes final : public RouteListener {
 public:
  std::string text;

  void link_is(int index, std::string_view name, bool up, uint32_t mtu) override {
    text += fmt::format("link {} {} {} {}; ", index, name, up ? "up" : "down", mtu);
  }
  void link_gone(int index) override { text += fmt::format("no link {}; ", index); }
  void address_is(int index, const Ip& address) override {
    text += fmt::format("{} has {}; ", index, ip_text(address));
  }
  void address_gone(int index, const Ip& address) override {
    text += fmt::format("{} lost {}; ", index, ip_text(address));
  }
  void dump_ended() override { text += "end; "; }
};

using Bytes = std::vector<uint8_t>;

template <class T>
void append(Bytes& bytes, const T& object) {
  auto* at = reinterpret_cast<const uint8_t*>(&object);
  bytes.insert(bytes.end(), at, at + sizeof object);
  bytes.resize(NLMSG_ALIGN(bytes.size()));
}

struct Attribute {
  uint16_t type;
  Bytes value;
};

template <class Body>
Bytes message(uint16_t type, const Body& body, const std::vector<Attribute>& attributes) {
  Bytes bytes;
  append(bytes, nlmsghdr{0, type, 0, 0, 0});
  append(bytes, body);
  for (const Attribute& attribute : attributes) {
    append(bytes,
           rtattr{static_cast<unsigned short>(RTA_LENGTH(attribute.value.size())), attribute.type});
    bytes.insert(bytes.end(), attribute.value.begin(), attribute.value.end());
    bytes.resize(NLMSG_ALIGN(bytes.size()));
  }
  auto size = static_cast<uint32_t>(bytes.size());
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

Bytes link(uint16_t type, unsigned flags, uint8_t family = AF_UNSPEC) {
  ifinfomsg body{};
  body.ifi_family = family;
  body.ifi_index = 4;
  body.ifi_flags = flags;
  return message(type, body, {{IFLA_IFNAME, {'e', 't', 'h', '0', 0}}, {IFLA_MTU, {0xdc, 5, 0, 0}}});
}

Bytes address(uint16_t type, uint8_t family, Bytes bytes, uint8_t flags = 0) {
  ifaddrmsg body{};
  body.ifa_family = family;
  body.ifa_index = 4;
  body.ifa_flags = flags;
  return message(type, body, {{IFA_ADDRESS, std::move(bytes)}});
}

std::string told(const Bytes& bytes) {
  Notes notes;
  read_route_messages(bytes, notes);
  return notes.text;
}

const Bytes kV6{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};

}  // namespace

TEST_CASE("route messages: links and addresses that come, change and go") {
  CHECK(told(link(RTM_NEWLINK, IFF_UP)) == "link 4 eth0 up 1500; ");
  CHECK(told(link(RTM_NEWLINK, 0)) == "link 4 eth0 down 1500; ");
  CHECK(told(link(RTM_DELLINK, IFF_UP)) == "no link 4; ");
  CHECK(told(address(RTM_NEWADDR, AF_INET, {10, 1, 2, 3})) == "4 has 10.1.2.3; ");
  CHECK(told(address(RTM_DELADDR, AF_INET, {10, 1, 2, 3})) == "4 lost 10.1.2.3; ");
  CHECK(told(address(RTM_NEWADDR, AF_INET6, kV6)) == "4 has fd00::7; ");
  CHECK(told(message(NLMSG_DONE, int32_t{0}, {})) == "end; ");
}

TEST_CASE("route messages: a bridge's messages about its ports are not the interfaces'") {
  CHECK(told(link(RTM_NEWLINK, IFF_UP, AF_BRIDGE)).empty());
  CHECK(told(link(RTM_DELLINK, IFF_UP, AF_BRIDGE)).empty());
}

TEST_CASE("route messages: an address counts once no duplicate of it was found") {
  CHECK(told(address(RTM_NEWADDR, AF_INET6, kV6, IFA_F_TENTATIVE)).empty());
  CHECK(told(address(RTM_NEWADDR, AF_INET6, kV6, IFA_F_DADFAILED)).empty());
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_index = 4;
  // Flags of 32 bits stand for those of the header, the local address for the far one.
  CHECK(told(message(RTM_NEWADDR, body,
                     {{IFA_ADDRESS, {10, 0, 0, 9}}, {IFA_LOCAL, {10, 0, 0, 1}}})) ==
        "4 has 10.0.0.1; ");
  CHECK(told(message(RTM_NEWADDR, body,
                     {{IFA_ADDRESS, {10, 0, 0, 1}}, {IFA_FLAGS, {IFA_F_TENTATIVE, 0, 0, 0}}}))
            .empty());
}

TEST_CASE("route messages: several in one datagram, and malformed ones") {
  Bytes both = link(RTM_NEWLINK, IFF_UP), more = address(RTM_NEWADDR, AF_INET, {10, 1, 2, 3});
  both.insert(both.end(), more.begin(), more.end());
  CHECK(told(both) == "link 4 eth0 up 1500; 4 has 10.1.2.3; ");
  // Every shorter piece tells less, or the same.
  for (size_t size = 0; size < both.size(); ++size) {
    std::string said = told({both.begin(), both.begin() + static_cast<long>(size)});
    CHECK((said.empty() || said == "link 4 eth0 up 1500; "));
  }
  CHECK(told(address(RTM_NEWADDR, AF_INET, {10, 1})).empty());
  CHECK(told(address(RTM_NEWADDR, 99, {10, 1, 2, 3})).empty());
  Bytes longer = more;
  longer[0] = 0xff;
  CHECK(told(longer).empty());
  Bytes endless = more;
  endless[0] = 1;  // shorter than its header
  CHECK(told(endless).empty());
}
