// Datagrams to groups: receivers, number of copies, counters.
#include <ctime>

#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint32_t kPd = 3, kQkey = 77;
const Ip kGroup{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};

// UD queue pair of a host, with receives for four messages.
struct Member {
  Device& device;
  CompletionQueue sends{16}, receives{16};
  std::shared_ptr<LocalMemory> memory = LocalMemory::create(4096);
  uint32_t key = 0;
  Qp* qp = nullptr;

  explicit Member(Device& d) : device(d) {
    key = *device.memory().add(memory, 0x1000, 4096, kPd, kLocalWrite);
    QpInit init;
    init.type = QpType::kUd;
    init.pd = kPd;
    init.send_cq = &sends;
    init.receive_cq = &receives;
    qp = *device.create_qp(init);
    QpAttributes attributes;
    attributes.qkey = kQkey;
    REQUIRE(qp->bring_up(attributes));
    for (uint64_t id = 0; id < 4; ++id) {
      ReceiveRequest request;
      request.wr_id = id;
      request.sges = Sge{0x1000 + id * 256, 256, key};
      REQUIRE(qp->post(request));
    }
  }
  ~Member() { device.destroy_qp(*qp); }
  void attach() { REQUIRE(device.groups().attach(kGroup, qp->number())); }
  void send(uint32_t qpn = kMulticastQpn) {
    SendRequest request;
    request.sges = Sge{0x1000 + 2048, 10, key};
    request.path.local = gids_of(device.port().spec())[0];
    request.path.remote = kGroup;
    request.remote_qpn = qpn;
    request.qkey = kQkey;
    REQUIRE(qp->post(request));
  }
  size_t received() {
    std::array<Completion, 16> done;
    return receives.poll(done);
  }
};

// Two hosts behind each of two leaves, which have two ways to each other.
Topology two_ways() {
  Topology topology;
  topology.switches = {{"leaf_0"}, {"leaf_1"}, {"spine_0"}, {"spine_1"}};
  for (unsigned n = 1; n <= 4; ++n) {
    topology.devices.push_back(host(n));
    topology.links.push_back(
        cable("h" + std::to_string(n), n <= 2 ? "leaf_0" : "leaf_1", 10'000'000'000));
  }
  for (const char* leaf : {"leaf_0", "leaf_1"}) {
    for (const char* spine : {"spine_0", "spine_1"}) {
      topology.links.push_back(cable(leaf, spine, 10'000'000'000));
    }
  }
  return topology;
}

}  // namespace

TEST_CASE("multicast: members receive the sent data, even if the sender changes it afterwards") {
  World world(1, two_ways());
  Member sender(world.device("h1")), near(world.device("h2")), far(world.device("h3"));
  for (Member* member : {&sender, &near, &far}) member->attach();
  uint8_t* sent = sender.memory->bytes().data() + 2048;
  std::memset(sent, 7, 10);
  sender.send();
  std::array<Completion, 16> done;
  while (sender.sends.poll(done) == 0) REQUIRE(world.scheduler.run_one(kSecond));
  std::memset(sent, 9, 10);
  REQUIRE(world.run_idle());
  for (Member* member : {&sender, &near, &far}) {
    REQUIRE(member->received() == 1);
    CHECK(member->memory->bytes()[kGrhLen] == 7);
    CHECK(member->memory->bytes()[kGrhLen + 9] == 7);
  }
}

TEST_CASE("multicast: each attached queue pair gets a datagram once, across all switches") {
  World world(1, two_ways());
  Member sender(world.device("h1")), idle(world.device("h1")), near(world.device("h2")),
      far(world.device("h3")), other(world.device("h4"));
  for (Member* member : {&sender, &near, &far}) member->attach();
  sender.send();
  REQUIRE(world.run_idle());
  CHECK(sender.received() == 1);  // its own as well
  CHECK(idle.received() == 0);
  CHECK(near.received() == 1);
  CHECK(far.received() == 1);
  CHECK(other.received() == 0);
  PortCounters& sent = world.device("h1").port().counters();
  CHECK(sent.multicast_xmit_packets.get() == 1);
  CHECK(sent.multicast_rcv_packets.get() == 0);
  CHECK(sent.unicast_xmit_packets.get() == 0);
  for (const char* name : {"h2", "h3", "h4"}) {
    INFO(name);
    PortCounters& counters = world.device(name).port().counters();
    CHECK(counters.multicast_rcv_packets.get() == 1);
    CHECK(counters.unicast_rcv_packets.get() == 0);
  }
}

TEST_CASE("multicast: datagrams go around a dead cable between switches") {
  for (const char* dead : {"leaf_0-spine_0", "spine_0-leaf_1", "spine_1-leaf_0"}) {
    INFO(dead);
    World world(1, two_ways());
    Member sender(world.device("h1")), near(world.device("h2")), far(world.device("h3"));
    for (Member* member : {&near, &far}) member->attach();
    for (bool carrier : {false, true}) {
      world.link(dead).set_carrier(carrier);
      sender.send();
      REQUIRE(world.run_idle());
      CHECK(near.received() == 1);
      CHECK(far.received() == 1);
    }
  }
}

TEST_CASE("multicast: a detached queue pair, or one addressed by another number, gets nothing") {
  World world(1, star(2));
  Member sender(world.device("h1")), member(world.device("h2"));
  member.attach();
  sender.send(member.qp->number());  // address of a group, QPN of one queue pair
  REQUIRE(world.run_idle());
  CHECK(member.received() == 0);
  REQUIRE(member.device.groups().detach(kGroup, member.qp->number()));
  CHECK(member.device.groups().detach(kGroup, member.qp->number()).error().code == EINVAL);
  sender.send();
  REQUIRE(world.run_idle());
  CHECK(member.received() == 0);
  {
    Member passing(world.device("h2"));
    passing.attach();
  }
  CHECK(member.device.groups().members(kGroup).empty());
}

TEST_CASE("multicast: a device tells of a group's first member, and of its last") {
  World world(1, star(2));
  Device& device = world.device("h2");
  std::vector<bool> told;
  device.groups().on_change([&](const Ip& group, bool exists) {
    CHECK(group == kGroup);
    told.push_back(exists);
  });
  auto said = [&](std::vector<bool> wanted) { return std::exchange(told, {}) == wanted; };
  {
    Member first(device), second(device);
    first.attach();
    CHECK(said({true}));
    first.attach();
    second.attach();
    CHECK(said({}));
    REQUIRE(device.groups().detach(kGroup, first.qp->number()));
    CHECK(said({}));
    REQUIRE(device.groups().detach(kGroup, second.qp->number()));
    CHECK(said({false}));
    second.attach();
    CHECK(said({true}));
  }
  CHECK(said({false}));
}

TEST_CASE("multicast: the end of a queue pair costs nothing for groups of others") {
  constexpr uint32_t kOthers = 40, kEach = 4096, kEnds = 1000;
  MulticastGroups groups;
  size_t exist = 0;
  groups.on_change([&](const Ip&, bool exists) { exists ? ++exist : --exist; });
  auto group_of = [](uint32_t number) {
    Ip group = kGroup;
    std::memcpy(&group[8], &number, sizeof number);
    return group;
  };
  for (uint32_t n = 0; n < kOthers * kEach; ++n) REQUIRE(groups.attach(group_of(n), n / kEach));
  const std::clock_t before = std::clock();
  for (uint32_t n = 0; n < kEnds; ++n) groups.forget(kOthers + n);
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 2);  // many seconds if each looks at all groups
  CHECK(exist == kOthers * kEach);
  groups.forget(0);
  CHECK(exist == (kOthers - 1) * kEach);
  CHECK(groups.members(group_of(0)).empty());
  CHECK(groups.members(group_of(kEach)).size() == 1);
}
