// The search for a neighbour: requests to the kernel, with answers that the test makes up.
#include "rdma/rtnetlink/neighbour_search.h"

#include <linux/neighbour.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "core/base/fd.h"
#include "rdma/rtnetlink/netlink_message.h"
#include "test/catch.h"
#include "test/skip.h"

using namespace rocefs;

namespace {

const Ip kSource = mapped_ipv4({10, 9, 0, 1}), kDestination = mapped_ipv4({10, 8, 0, 7});
const Ip kGateway = mapped_ipv4({10, 9, 0, 2});

void add_ipv4(std::string& message, uint16_t type, const Ip& ip) {
  netlink::add(message, type, ip.data() + 12, 4);
}

std::string route(uint8_t type, std::optional<Ip> gateway, uint32_t interface = 3) {
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_type = type;
  std::string message = netlink::begin(RTM_NEWROUTE, 0, body);
  add_ipv4(message, RTA_DST, kDestination);
  if (gateway) add_ipv4(message, RTA_GATEWAY, *gateway);
  netlink::add(message, RTA_OIF, interface);
  return message;
}

std::string neighbour(const Ip& ip, uint16_t state, uint16_t type = RTM_NEWNEIGH,
                      int interface = 3) {
  ndmsg body{};
  body.ndm_family = AF_INET;
  body.ndm_ifindex = interface;
  body.ndm_state = state;
  std::string message = netlink::begin(type, 0, body);
  add_ipv4(message, NDA_DST, ip);
  return message;
}

std::string result(int error) {
  nlmsgerr body{};
  body.error = -error;
  return netlink::begin(NLMSG_ERROR, 0, body);
}

// The socket takes requests, and nobody reads the kernel's answers to them.
struct Searching {
  PollLoop loop;
  Fd socket{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
  NeighbourSearch search{loop, socket.get(), NeighbourSearch::Network::kHosts};
  std::vector<int> answers;
  uint32_t last = 0;  // number of the latest request

  void find(TimeNs patience = 10 * kSecond) {
    ++last;
    search.find(kSource, kDestination, patience, [this](int error) { answers.push_back(error); });
  }
  void tell(std::string message, uint32_t sequence) {
    netlink::finish(message, sequence);
    search.receive({reinterpret_cast<const uint8_t*>(message.data()), message.size()});
  }
  // Answer to the latest request, upon which the next one is sent.
  void reply(const std::string& message) { tell(message, last++); }
  // Search as far as the wait for a neighbour.
  void wait_for(std::optional<Ip> gateway) {
    find();
    reply(route(RTN_UNICAST, gateway));
    reply(result(0));
    tell(result(ENOENT), last);
  }
  bool answered(int error) { return std::exchange(answers, {}) == std::vector<int>{error}; }
};

// Whether the kernel takes requests for a neighbour.
bool has_neighbours() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  ndmsg body{};
  body.ndm_family = AF_INET;
  std::string message = netlink::begin(RTM_GETNEIGH, 0, body);
  netlink::finish(message, 1);
  return ::send(socket.get(), message.data(), message.size(), 0) > 0;
}

}  // namespace

#define NEEDS_NEIGHBOURS() \
  if (!has_neighbours()) test::skip("no requests for neighbours by netlink here")

TEST_CASE("neighbours: without a route the kernel's errno is the answer") {
  Searching at;
  for (int error : {ENETUNREACH, EHOSTUNREACH, EINVAL}) {
    at.find();
    at.tell(result(error), at.last);
    CHECK(at.answered(error));
  }
  at.find();
  at.tell(route(RTN_UNREACHABLE, {}), at.last);
  CHECK(at.answered(EHOSTUNREACH));
  at.find();
  at.tell(route(RTN_LOCAL, {}), at.last);
  CHECK(at.answered(0));
}

TEST_CASE("neighbours: one that the kernel knows is the answer, and a new one when it comes") {
  NEEDS_NEIGHBOURS();
  Searching at;
  at.find();
  at.reply(route(RTN_UNICAST, {}));
  at.reply(result(EPERM));  // may not probe: looks all the same
  CHECK(at.answers.empty());
  at.tell(neighbour(kDestination, NUD_STALE), at.last);
  CHECK(at.answered(0));

  at.wait_for({});
  at.tell(neighbour(kDestination, NUD_INCOMPLETE), 0);
  at.tell(neighbour(kDestination, NUD_FAILED), 0);
  at.tell(neighbour(kDestination, NUD_REACHABLE, RTM_DELNEIGH), 0);
  at.tell(neighbour(kDestination, NUD_REACHABLE, RTM_NEWNEIGH, 4), 0);  // other interface
  at.tell(neighbour(kGateway, NUD_REACHABLE), 0);
  CHECK(at.answers.empty());
  at.tell(neighbour(kDestination, NUD_REACHABLE), 0);
  CHECK(at.answered(0));
}

TEST_CASE("neighbours: behind a gateway it is the gateway that has to answer") {
  NEEDS_NEIGHBOURS();
  Searching at;
  at.wait_for(kGateway);
  at.tell(neighbour(kDestination, NUD_REACHABLE), 0);
  CHECK(at.answers.empty());
  at.tell(neighbour(kGateway, NUD_REACHABLE), 0);
  CHECK(at.answered(0));
}

TEST_CASE("neighbours: searches begin anew when messages were lost, and are few") {
  NEEDS_NEIGHBOURS();
  Searching at;
  at.wait_for({});
  at.search.messages_lost();
  at.reply(result(0));  // answer to a request of before
  CHECK(at.answers.empty());
  at.reply(route(RTN_UNICAST, {}));
  at.reply(result(0));
  at.tell(neighbour(kDestination, NUD_PERMANENT), at.last);
  CHECK(at.answered(0));

  Searching many;
  for (size_t i = 0; i < NeighbourSearch::kMaxSearches; ++i) many.find();
  CHECK(many.answers.empty());
  many.find();
  CHECK(many.answered(ENOMEM));
}

TEST_CASE("neighbours: malformed messages are no answers") {
  NEEDS_NEIGHBOURS();
  Searching at;
  at.find();
  std::string whole = route(RTN_UNICAST, kGateway);
  netlink::finish(whole, at.last);
  for (size_t size = 0; size < whole.size(); ++size) {
    at.search.receive({reinterpret_cast<const uint8_t*>(whole.data()), size});
  }
  rtmsg body{};
  body.rtm_type = RTN_UNICAST;
  at.tell(netlink::begin(RTM_NEWROUTE, 0, body), at.last);  // without an address
  CHECK(at.answers.empty());
  at.reply(whole);
  at.reply(result(0));
  at.tell(neighbour(kGateway, NUD_NOARP), at.last);
  CHECK(at.answered(0));
}
