// Illegitimate requests of programs and far ends: each is refused, and others are not affected.
#include "test/rdma/cm/rig.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Type = CmEventType;

// Request of mb_0's program at mb_1's listener, whose program has not read it yet.
struct Asked {
  CmRig rig;
  uint32_t listener = rig.far.create(0xa0);
  uint32_t near = rig.near.create(0xb0);
  explicit Asked(uint32_t backlog = 8) {
    rig.far.listen(listener, rig.address("mb_1", 7000), backlog);
    rig.near.resolve(near, rig.address("mb_1", 7000));
    rig.near.connect(near, 0x111);
    rig.pass();
  }
  // Hand-made REQ of a far end at mb_0's address.
  void req(uint32_t number, const std::function<void(cm::Req&)>& change) {
    Port& to = rig.world.device("mb_1").port();
    AddressVector path{gids_of(to.spec())[1], gids_of(rig.world.device("mb_0").port().spec())[1]};
    cm::Req one = std::get<cm::Req>(rig.wire.messages.at(0));
    one.local_id = number;
    one.qpn = number;
    change(one);
    rig.manager("mb_1").receive_mad(to, path, cm::emit(number, one));
  }
  uint16_t reason() {
    rig.pass();
    auto* rej = std::get_if<cm::Rej>(&rig.wire.messages.back());
    return rej ? rej->reason : uint16_t{0};
  }
};

}  // namespace

TEST_CASE("cm: a request that is not yet fetched cannot be migrated or destroyed") {
  Asked asked;
  CmRig& rig = asked.rig;
  uint32_t fresh = asked.near + 1;  // numbers are consecutive
  ucma::EventsAnswer answer{};
  UcmaChannel& from = rig.far.channel();
  Program thief(rig.ucma, 3);
  CHECK(thief.call(ucma::Command::kMigrateId, ucma::MigrateId{0, fresh, 0}, &answer, 4, {},
                   &from) == ENOENT);
  CHECK(rig.far.call(ucma::Command::kDestroyId, ucma::DestroyId{0, fresh, 0}, &answer, 4) ==
        ENOENT);
  CHECK(rig.far.expect(Type::kConnectRequest).id == fresh);
  CHECK(thief.call(ucma::Command::kMigrateId, ucma::MigrateId{0, fresh, 0}, &answer, 4, {},
                   &from) == 0);
}

TEST_CASE("cm: a user who takes all ids leaves some to the next one and to root") {
  CmRig rig;
  ucma::CreateId create{};
  create.space = static_cast<uint16_t>(PortSpace::kTcp);
  // Number of ids until the first refusal.
  auto take_all = [&](Program& program) {
    ucma::IdAnswer answer{};
    uint32_t taken = 0;
    int error;
    while ((error = program.call(ucma::Command::kCreateId, create, &answer, sizeof answer)) == 0) {
      ++taken;
    }
    CHECK(error == ENOMEM);
    return taken;
  };
  Program user(rig.ucma, 3, 1000), other(rig.ucma, 4, 1001), third(rig.ucma, 5, 1002);
  uint32_t all = Ucma::kMaxIds - Ucma::kReservedIds;
  CHECK(take_all(user) == all / 2);
  CHECK(take_all(other) == all / 4);
  CHECK(take_all(third) == all / 8);
  for (uint32_t i = 0; i < Ucma::kReservedIds; ++i) rig.near.create(i);
  user.destroy(0);
  rig.near.create(1);
}

TEST_CASE("cm: the number of unfetched events is limited") {
  CmRig rig;
  uint32_t id = rig.near.create(1);
  ucma::SockaddrIn6 nobody = rig.address("mb_0", 1);
  nobody.bytes[7] = 99;
  ucma::ResolveIp nowhere{{}, nobody, id, 0};
  for (size_t i = 0; i < UcmaChannel::kMaxEvents; ++i) {
    rig.near.must(ucma::Command::kResolveIp, nowhere);
    rig.pass(1);
  }
  CHECK(rig.near.call(ucma::Command::kResolveIp, nowhere) == ENOMEM);
  CHECK(rig.near.call(ucma::Command::kWriteEvent, ucma::WriteEvent{id, 0, 18, 0, 0}) == ENOMEM);
  rig.near.expect(Type::kAddressError, -ETIMEDOUT);
  CHECK(rig.near.call(ucma::Command::kResolveIp, nowhere) == 0);
}

TEST_CASE("cm: a REQ with an invalid value is refused with the standard's reason") {
  Asked asked;
  asked.req(50, [](cm::Req& req) { req.path_mtu = 0; });
  CHECK(asked.reason() == cm::kInvalidMtu);
  asked.req(51, [](cm::Req& req) { req.transport = 1; });  // UC, of a service of RC
  CHECK(asked.reason() == cm::kInvalidTransport);
  asked.req(52, [](cm::Req& req) { req.path_mtu = 6; });  // above the port's 4096
  CHECK(asked.reason() == cm::kInvalidMtu);
}

TEST_CASE("cm: timewait is bounded, whatever acknowledgement time the peer states") {
  Asked asked;
  CmRig& rig = asked.rig;
  asked.req(60, [](cm::Req& req) { req.primary.local_ack_timeout = 31; });  // 2.4 hours
  asked.req(61, [](cm::Req& req) { req.responder_resources = req.initiator_depth = 255; });
  rig.pass();
  rig.far.expect(Type::kConnectRequest);
  uint32_t id = rig.far.expect(Type::kConnectRequest).id;
  uint32_t deep = rig.far.expect(Type::kConnectRequest).id;
  CHECK(rig.far.attributes(deep, 2).max_dest_rd_atomic == kMaxRdAtomic);
  CHECK(rig.far.attributes(deep, 3).max_rd_atomic == kMaxRdAtomic);
  rig.far.accept(id, 0xa1, 0x222);
  ucma::Notify established{id, 4};  // its RTU never comes
  rig.far.must(ucma::Command::kNotify, established);
  size_t before = rig.manager("mb_1").connections();
  rig.far.destroy(id);
  rig.pass(CmConnection::kMaxTimewait + kMillisecond);
  CHECK(rig.manager("mb_1").connections() == before - 1);
}

TEST_CASE("cm: a program may reject with a vendor's reason, but not with the CM's own") {
  Asked asked;
  uint32_t id = asked.rig.far.expect(Type::kConnectRequest).id;
  ucma::Reject reject{};
  reject.id = id;
  reject.reason = cm::kStaleConnection;
  CHECK(asked.rig.far.call(ucma::Command::kReject, reject) == EINVAL);
  reject.reason = cm::kVendorOptionNotSupported;
  asked.rig.far.must(ucma::Command::kReject, reject);
  asked.rig.pass();
  asked.rig.near.expect(Type::kRejected, cm::kVendorOptionNotSupported);
}

TEST_CASE("cm: a refused second listen leaves the backlog unchanged") {
  Asked asked(1);  // one waits, and there is no room
  CHECK(asked.rig.far.call(ucma::Command::kListen, ucma::Listen{asked.listener, 8}) == EINVAL);
  asked.req(70, [](cm::Req&) {});
  asked.rig.pass();
  CHECK(asked.rig.far.channel().events() == 1);
}

TEST_CASE("cm: the loopback address resolves as a local address") {
  CmRig rig;
  uint32_t id = rig.near.create(1);
  rig.near.must(ucma::Command::kResolveIp,
                ucma::ResolveIp{{}, Program::ipv4(1, 7000, {127, 0, 0}), id, 1});
  rig.near.expect(Type::kAddressResolved);
}

TEST_CASE("cm: the removal of a device is reported once, and ends listening") {
  Asked asked;
  CmRig& rig = asked.rig;
  Device& device = rig.world.device("mb_1");
  rig.far.expect(Type::kConnectRequest);
  for (int i = 0; i < 2; ++i) {
    device.leave();
    device.arrive();
  }
  rig.far.expect(Type::kDeviceRemoval);
  CHECK(rig.far.quiet());
  asked.req(80, [](cm::Req&) {});
  rig.pass();
  CHECK(rig.far.quiet());
}

TEST_CASE("cm: a REJ for a time-out names the CA by its GUID") {
  Asked asked;
  asked.rig.near.destroy(asked.near);
  asked.rig.pass();
  auto rej = std::get<cm::Rej>(asked.rig.wire.messages.at(1));
  CHECK(rej.reason == cm::kTimeout);
  CHECK(rej.info_length == 8);
  uint64_t guid = 0;
  for (size_t i = 0; i < 8; ++i) guid = guid << 8 | rej.info[i];
  CHECK(guid == std::get<cm::Req>(asked.rig.wire.messages.at(0)).ca_guid);
}
