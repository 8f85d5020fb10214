#include "test/rdma/cm/rig.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("ucma: an invalid command is refused as by the kernel") {
  CmRig rig;
  Program& p = rig.near;
  uint32_t id = p.create(1), foreign = rig.far.create(2);
  uint32_t answer[128];
  CHECK(p.channel().command({}, {}, nullptr).error().code == EINVAL);
  auto octets = Program::octets(ucma::Command::kResolveRoute, ucma::ResolveRoute{id, 1}, 0);
  CHECK(p.channel().command(std::span(octets).first(12), {}, nullptr).error().code == EINVAL);
  octets[4] = 4;  // length field says that it is shorter, and it is
  CHECK(p.channel().command(octets, {}, nullptr).error().code == EINVAL);
  for (uint32_t none : {13u, 25u, 1000u}) {
    CHECK(p.call(static_cast<ucma::Command>(none), ucma::Disconnect{id}) == ENOSYS);
  }
  CHECK(p.call(ucma::Command::kListen, ucma::Listen{999, 1}) == ENOENT);
  CHECK(p.call(ucma::Command::kListen, ucma::Listen{foreign, 1}) == EINVAL);
  CHECK(p.call(ucma::Command::kDestroyId, ucma::DestroyId{0, id, 0}, answer, 3) == ENOSPC);
  CHECK(p.call(ucma::Command::kQuery, ucma::Query{0, id, 0}, answer, 8) == ENOSPC);
  CHECK(p.call(ucma::Command::kQuery, ucma::Query{0, id, 9}, answer, 280) == ENOSYS);
  CHECK(p.call(ucma::Command::kGetEvent, ucma::GetEvent{0}, answer, 336) == EAGAIN);
  CHECK(p.call(ucma::Command::kResolveRoute, ucma::ResolveRoute{id, 1}) == EINVAL);
  CHECK(p.call(ucma::Command::kDisconnect, ucma::Disconnect{id}) == EINVAL);
  CHECK(p.call(ucma::Command::kInitQpAttr, ucma::InitQpAttr{0, id, 1}, answer, 144) == EINVAL);
  CHECK(p.call(ucma::Command::kConnect, ucma::Connect{p.parameters(1), id, 0, {}}) == EINVAL);
  ucma::CreateId create{};
  create.space = 0x1234;
  CHECK(p.call(ucma::Command::kCreateId, create, answer, 4) == EINVAL);
  ucma::SockaddrIn6 odd{};
  odd.bytes = {77};
  CHECK(p.call(ucma::Command::kBindIp, ucma::BindIp{0, odd, id}) == EAFNOSUPPORT);
  CHECK(p.call(ucma::Command::kBindIp, ucma::BindIp{0, Program::ipv4(9, 1, {9, 9, 9}), id}) ==
        ENODEV);
  CHECK(rig.ucma.ids() == 2);
}

namespace {

// Addresses of two fabrics: 10.77.0.99 is in the network of mb_0, and nobody's; 9.9.9.9 in none.
struct Resolving {
  CmRig rig;
  uint32_t id = rig.near.create(1);
  int resolve(unsigned last, uint32_t timeout_ms) {
    const auto& v4 = rig.world.device("mb_0").port().spec().ipv4;
    return resolve(Program::ipv4(last, 7000, {v4[0], v4[1], v4[2]}), timeout_ms);
  }
  int resolve(const ucma::SockaddrIn6& to, uint32_t timeout_ms) {
    return rig.near.call(ucma::Command::kResolveIp, ucma::ResolveIp{{}, to, id, timeout_ms});
  }
  std::string state() {
    std::string text = rig.cma.text();
    return text.substr(text.rfind('=') + 1);
  }
};

}  // namespace

// rdma_resolve_ip() of Linux.
TEST_CASE("ucma: a destination without a route is refused at once") {
  Resolving at;
  CHECK(at.resolve(Program::ipv4(9, 1, {9, 9, 9}), 1000) == ENETUNREACH);
  CHECK(at.rig.near.quiet());
  CHECK(at.resolve(2, 1000) == 0);
  at.rig.near.expect(CmEventType::kAddressResolved);
}

TEST_CASE("ucma: an address that nobody has is waited for as long as the program says") {
  Resolving at;
  for (uint32_t timeout_ms : {2000u, 0u, 1u}) {
    REQUIRE(at.resolve(99, timeout_ms) == 0);
    CHECK(at.state() == "address query\n");
    CHECK(at.resolve(2, 1) == EINVAL);
    at.rig.pass(timeout_ms * kMillisecond - 1);
    if (timeout_ms > 0) CHECK(at.rig.near.quiet());
    at.rig.pass(1);
    at.rig.near.expect(CmEventType::kAddressError, -ETIMEDOUT);
    CHECK(at.state() == "bound\n");
  }
  REQUIRE(at.resolve(2, 1000) == 0);
  at.rig.near.expect(CmEventType::kAddressResolved);
}

TEST_CASE("ucma: an address query ends with its id, and with the id's device") {
  Resolving at;
  REQUIRE(at.resolve(99, 1000) == 0);
  at.rig.near.destroy(at.id);
  at.rig.pass(2 * kSecond);
  CHECK(at.rig.near.quiet());

  at.id = at.rig.near.create(2);
  at.rig.near.must(ucma::Command::kBindIp, ucma::BindIp{0, at.rig.address("mb_0", 0), at.id});
  REQUIRE(at.resolve(99, 1000) == 0);
  at.rig.world.device("mb_0").leave();
  at.rig.near.expect(CmEventType::kDeviceRemoval);
  at.rig.pass(2 * kSecond);
  CHECK(at.rig.near.quiet());
}

TEST_CASE("ucma: a host's kernel is asked for an address that nobody in the fabric has") {
  CmRig rig;
  std::vector<CmSearch> asked;
  rig.cma.search_by([&](const CmSearch& one) { asked.push_back(one); });
  Device& mb_0 = rig.world.device("mb_0");
  Program on_host(rig.ucma, 3, CmScope({&mb_0}));
  auto resolve = [&](uint32_t id, unsigned last) {
    const auto& v4 = mb_0.port().spec().ipv4;
    on_host.must(ucma::Command::kResolveIp,
                 ucma::ResolveIp{{}, Program::ipv4(last, 1, {v4[0], v4[1], v4[2]}), id, 1000});
  };
  uint32_t id = on_host.create(1);
  resolve(id, 2);  // mb_1's: no question
  on_host.expect(CmEventType::kAddressResolved);
  CHECK(asked.empty());

  id = on_host.create(2);
  resolve(id, 99);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].host == &mb_0);
  CHECK(asked[0].source == mapped_ipv4(mb_0.port().spec().ipv4));
  CHECK(on_host.quiet());
  rig.cma.answered(asked[0], 0);
  on_host.expect(CmEventType::kAddressResolved);
  rig.cma.answered(asked[0], ENETUNREACH);  // once more
  CHECK(on_host.quiet());

  id = on_host.create(3);
  resolve(id, 99);
  rig.cma.answered(asked[1], EHOSTUNREACH);
  on_host.expect(CmEventType::kAddressError, -EHOSTUNREACH);
  resolve(id, 99);
  rig.cma.answered(asked[1], 0);  // late answer to the attempt before
  CHECK(on_host.quiet());
  rig.pass(kSecond);
  on_host.expect(CmEventType::kAddressError, -ETIMEDOUT);
  on_host.destroy(id);
  rig.cma.answered(asked[2], 0);
  CHECK(on_host.quiet());
}

TEST_CASE("ucma: options are checked for their size, and take effect") {
  CmRig rig;
  uint32_t id = rig.near.create(1);
  auto set = [&](uint32_t name, std::vector<uint8_t> value, uint32_t level = 0) {
    ucma::SetOption asked{0, id, level, name, static_cast<uint32_t>(value.size())};
    return rig.near.call(ucma::Command::kSetOption, asked, nullptr, 0, value);
  };
  CHECK(set(ucma::kTos, {0x68}) == 0);
  CHECK(set(ucma::kTos, {1, 2}) == EINVAL);
  CHECK(set(ucma::kReuseAddress, {1, 0, 0, 0}) == 0);
  CHECK(set(ucma::kReuseAddress, {1}) == EINVAL);
  CHECK(set(ucma::kFamilyOnly, {1, 0, 0, 0}) == 0);
  CHECK(set(ucma::kAckTimeout, {20}) == 0);
  CHECK(set(ucma::kAckTimeout, {32}) == EINVAL);
  CHECK(set(9, {1}) == ENOSYS);
  CHECK(set(1, {1}, ucma::kLevelIb) == ENOSYS);
  uint32_t listener = rig.far.create(2);
  rig.far.listen(listener, rig.address("mb_1", 7000));
  rig.near.resolve(id, rig.address("mb_1", 7000));
  rig.near.connect(id, 1);
  rig.pass();
  uint32_t far = rig.far.expect(CmEventType::kConnectRequest).id;
  CHECK(rig.far.attributes(far, 2).path.traffic_class == 0);
  CHECK(rig.far.attributes(far, 3).timeout == 20);
  CHECK(std::get<cm::Req>(rig.wire.messages[0]).primary.traffic_class == 0x68);
}

TEST_CASE("ucma: a port number is bound once, to one address or to all") {
  CmRig rig;
  auto bind = [&](const ucma::SockaddrIn6& at) {
    return rig.near.call(ucma::Command::kBindIp, ucma::BindIp{0, at, rig.near.create(1)});
  };
  ucma::SockaddrIn6 any = Program::ipv4(0, 7000, {0, 0, 0});
  CHECK(bind(rig.address("mb_0", 7000)) == 0);
  CHECK(bind(rig.address("mb_1", 7000)) == 0);
  CHECK(bind(rig.address("mb_0", 7000)) == EADDRINUSE);
  CHECK(bind(any) == EADDRINUSE);
  uint32_t udp = rig.near.create(1, PortSpace::kUdp);
  CHECK(rig.near.call(ucma::Command::kBindIp, ucma::BindIp{0, any, udp}) == 0);
  rig.near.destroy(udp);

  // Bind to port 0 chooses a free port, and the answer has it.
  uint32_t id = rig.near.create(1);
  rig.near.must(ucma::Command::kBindIp, ucma::BindIp{0, rig.address("mb_0", 0), id});
  ucma::AddressAnswer told{};
  CHECK(rig.near.call(ucma::Command::kQuery, ucma::Query{0, id, 0}, &told, sizeof told) == 0);
  CHECK(told.source_size == 16);
  CHECK(told.source.bytes[2] * 256 + told.source.bytes[3] >= 32768);
  CHECK(told.node_guid == __builtin_bswap64(guid_of(rig.world.device("mb_0").port().spec())));
  CHECK(told.port == 1);
}

// cma_any_addr() of Linux: a loopback address binds to all devices.
TEST_CASE("ucma: a listener at the loopback address hears every device") {
  CmRig rig;
  uint32_t id = rig.near.create(1), listener = rig.far.create(2);
  rig.far.listen(listener, Program::ipv4(1, 7000, {127, 0, 0}));
  rig.near.resolve(id, rig.address("mb_1", 7000));
  rig.near.connect(id, 1);
  rig.pass();
  rig.far.expect(CmEventType::kConnectRequest);
}

// cma_iboe_join_multicast() of Linux.
TEST_CASE("ucma: a joined group is told with its address, and left with its events") {
  CmRig rig;
  uint32_t id = rig.near.create(1, PortSpace::kUdp);
  auto join = [&](uint32_t of, const ucma::SockaddrIn6& group, ucma::IdAnswer& made) {
    return rig.near.call(ucma::Command::kJoinIpMulticast, ucma::JoinIpMulticast{0, 77, group, of},
                         &made, sizeof made);
  };
  const ucma::SockaddrIn6 group = Program::ipv4(9, 0, {239, 1, 2});
  ucma::IdAnswer made{};
  CHECK(join(id, group, made) == EINVAL);  // not bound
  rig.near.must(ucma::Command::kBindIp, ucma::BindIp{0, rig.address("mb_0", 0), id});
  CHECK(join(id, Program::ipv4(9, 0, {10, 1, 2}), made) == EINVAL);
  CHECK(join(rig.near.create(3), group, made) == EINVAL);  // of RC
  CHECK(join(id, group, made) == 0);
  ucma::EventAnswer event = rig.near.event();
  CHECK(event.type == static_cast<uint32_t>(CmEventType::kMulticastJoin));
  CHECK(event.uid == 77);
  CHECK(event.id == made.id);
  CHECK(event.datagram.qpn == 0xffffff);
  CHECK(event.datagram.path.dgid == mapped_ipv4({239, 1, 2, 9}));
  CHECK(event.datagram.path.is_global == 1);
  ucma::EventsAnswer left{};
  auto leave = [&](uint32_t number) {
    return rig.near.call(ucma::Command::kLeaveMulticast, ucma::LeaveMulticast{0, number, 0}, &left,
                         sizeof left);
  };
  CHECK(leave(made.id) == 0);
  CHECK(left.events_reported == 1);
  CHECK(leave(made.id) == ENOENT);
  // Events that nobody has read go with the membership, or with the id.
  CHECK(join(id, group, made) == 0);
  CHECK(leave(made.id) == 0);
  CHECK(left.events_reported == 0);
  CHECK(join(id, group, made) == 0);
  CHECK(rig.near.destroy(id) == 0);
  CHECK(rig.near.quiet());
  CHECK(leave(made.id) == ENOENT);
}

// bind(2) with IPV6_V6ONLY.
TEST_CASE("ucma: 0.0.0.0 and [::] share a port if the latter takes IPv6 alone") {
  for (uint8_t only : {0, 1}) {
    CmRig rig;
    uint32_t four = rig.near.create(1), six = rig.near.create(2);
    rig.near.must(ucma::Command::kBindIp, ucma::BindIp{0, Program::ipv4(0, 7000, {0, 0, 0}), four});
    ucma::SetOption asked{0, six, 0, ucma::kFamilyOnly, 4};
    const std::vector<uint8_t> value{only, 0, 0, 0};
    CHECK(rig.near.call(ucma::Command::kSetOption, asked, nullptr, 0, value) == 0);
    int wanted = only ? 0 : EADDRINUSE;
    CHECK(rig.near.call(ucma::Command::kBindIp, ucma::BindIp{0, Program::any_ipv6(7000), six}) ==
          wanted);
  }
}

TEST_CASE("ucma: a channel is readable while events wait, and destroying an id drops its events") {
  CmRig rig;
  uint32_t id = rig.near.create(1), other = rig.near.create(2);
  auto resolve = [&](uint32_t which) {
    rig.near.must(ucma::Command::kResolveIp,
                  ucma::ResolveIp{{}, rig.address("mb_1", 7000), which, 1});
  };
  resolve(id);
  CHECK(rig.near.woken == 1);
  resolve(other);
  CHECK(rig.near.woken == 1);
  CHECK(rig.near.event().uid == 1);
  CHECK_FALSE(rig.near.emptied);
  CHECK(rig.near.destroy(other) == 0);
  CHECK(rig.near.emptied);
  CHECK(rig.near.quiet());
  CHECK(rig.near.destroy(id) == 1);
  CHECK_FALSE(rig.near.emptied);
}

TEST_CASE("ucma: a migrated id takes its waiting events along") {
  CmRig rig;
  uint32_t id = rig.near.create(1);
  rig.near.must(ucma::Command::kResolveIp, ucma::ResolveIp{{}, rig.address("mb_1", 7000), id, 1});
  ucma::EventsAnswer answer{9};
  ucma::MigrateId asked{0, id, 3};
  CHECK(rig.far.call(ucma::Command::kMigrateId, asked, &answer, 4) == EINVAL);
  CHECK(rig.far.call(ucma::Command::kMigrateId, asked, &answer, 4, {}, &rig.near.channel()) == 0);
  CHECK(answer.events_reported == 0);
  CHECK(rig.near.quiet());
  CHECK(rig.far.woken == 1);
  CHECK(rig.far.expect(CmEventType::kAddressResolved).uid == 1);
  rig.far.must(ucma::Command::kResolveRoute, ucma::ResolveRoute{id, 1});
  rig.far.expect(CmEventType::kRouteResolved);
  CHECK(rig.far.destroy(id) == 2);
}

// ucma_write_cm_event() of Linux.
TEST_CASE("ucma: a program reads the event that it has written, with its argument") {
  CmRig rig;
  constexpr auto kWrite = ucma::Command::kWriteEvent;
  for (PortSpace space : {PortSpace::kTcp, PortSpace::kUdp}) {
    uint32_t id = rig.near.create(7, space);
    for (CmEventType type : {CmEventType::kUser, CmEventType::kInternal}) {
      auto number = static_cast<uint32_t>(type);
      rig.near.must(kWrite, ucma::WriteEvent{id, 0, number, 5, 0x1122334455667788});
      ucma::EventAnswer got = rig.near.expect(type, 5);
      CHECK(got.uid == 7);
      CHECK(got.id == id);
      CHECK(got.argument[0] == 0x55667788);
      CHECK(got.argument[1] == 0x11223344);
    }
    auto established = static_cast<uint32_t>(CmEventType::kEstablished);
    CHECK(rig.near.call(kWrite, ucma::WriteEvent{id, 0, established, 0, 0}) == EINVAL);
    ucma::EventsAnswer gone{};
    CHECK(rig.near.call(ucma::Command::kDestroyId, ucma::DestroyId{0, id, 0}, &gone, 4) == 0);
    CHECK(gone.events_reported == 2);
  }
  CHECK(rig.near.call(kWrite, ucma::WriteEvent{999, 0, 18, 0, 0}) == ENOENT);
  CHECK(rig.near.quiet());
}

// rdma_resolve_ib_service() of Linux.
TEST_CASE("ucma: service records are not supported, as on any port of RoCE") {
  CmRig rig;
  uint32_t id = rig.near.create(1);
  constexpr auto kResolve = ucma::Command::kResolveIbService;
  CHECK(rig.near.call(kResolve, ucma::ResolveIbService{id, 0, 1, {}, 1, 0}) == EINVAL);
  rig.near.must(ucma::Command::kBindIp, ucma::BindIp{0, rig.address("mb_0", 0), id});
  CHECK(rig.near.call(kResolve, ucma::ResolveIbService{id, 0, 1, {}, 1, 0}) == EOPNOTSUPP);
}

TEST_CASE("ucma: an IB address consists of a GID and a service id") {
  CmRig rig;
  auto gid = [&](const char* device, uint64_t service) {
    ucma::SockaddrStorage at{};
    at.bytes[0] = 27;
    Ip ip = gids_of(rig.world.device(device).port().spec())[1];
    std::copy(ip.begin(), ip.end(), at.bytes.begin() + 8);
    for (size_t i = 0; i < 8; ++i) at.bytes[24 + i] = static_cast<uint8_t>(service >> (56 - 8 * i));
    return at;
  };
  constexpr uint64_t kService = 0x013f0000 + 7000;
  uint32_t listener = rig.far.create(1, PortSpace::kIb);
  rig.far.must(ucma::Command::kBind, ucma::Bind{listener, 48, 0, gid("mb_1", kService)});
  rig.far.must(ucma::Command::kListen, ucma::Listen{listener, 4});
  uint32_t id = rig.near.create(2, PortSpace::kIb);
  ucma::ResolveAddress asked{};
  asked.id = id;
  asked.destination_size = 48;
  asked.destination = gid("mb_1", kService);
  rig.near.must(ucma::Command::kResolveAddress, asked);
  rig.near.expect(CmEventType::kAddressResolved);
  rig.near.must(ucma::Command::kResolveRoute, ucma::ResolveRoute{id, 1});
  rig.near.expect(CmEventType::kRouteResolved);
  ucma::PathAnswer path{};
  CHECK(rig.near.call(ucma::Command::kQuery, ucma::Query{0, id, 1}, &path, sizeof path) == 0);
  CHECK(path.path_count == 1);
  rig.near.connect(id, 5, "all of it");
  rig.pass();
  ucma::EventAnswer request = rig.far.expect(CmEventType::kConnectRequest);
  CHECK(request.connection.private_size == 92);
  CHECK(std::get<cm::Req>(rig.wire.messages[0]).service_id == kService);
}
