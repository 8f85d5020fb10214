#include "rdma/wire/packet.h"
#include "test/rdma/cm/rig.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr TimeNs kMinutes = 120 * kSecond;

std::string text_of(const ucma::ConnectionParameters& p) {
  return std::string(reinterpret_cast<const char*>(p.private_data.data()));
}

}  // namespace

TEST_CASE(
    "cm: two programs connect, exchange the parameters of their queue pairs, and disconnect") {
  CmRig rig;
  uint32_t listener = rig.far.create(0xa0);
  rig.far.listen(listener, rig.address("mb_1", 7000));
  uint32_t id = rig.near.create(0xb0);
  rig.near.resolve(id, rig.address("mb_1", 7000));
  CHECK(rig.near.attributes(id, 1).mask == (1 | 1 << 3 | 1 << 4 | 1 << 5));
  rig.near.connect(id, 0x111, "hello");
  rig.pass();
  ucma::EventAnswer request = rig.far.expect(CmEventType::kConnectRequest);
  CHECK(request.uid == 0xa0);
  CHECK(text_of(request.connection) == "hello");
  CHECK(request.connection.private_size == 56);
  CHECK(request.connection.qpn == 0x111);
  CHECK(request.connection.responder_resources == 3);
  CHECK(request.connection.initiator_depth == 2);
  CHECK(request.connection.retry_count == 5);

  ucma::QpAttr passive_rtr = rig.far.attributes(request.id, 2);
  ucma::QpAttr passive_rts = rig.far.attributes(request.id, 3);
  rig.far.accept(request.id, 0xa1, 0x222, "welcome");
  rig.pass();
  ucma::EventAnswer response = rig.near.expect(CmEventType::kConnectResponse);
  CHECK(response.uid == 0xb0);
  CHECK(text_of(response.connection) == "welcome");
  CHECK(response.connection.qpn == 0x222);
  ucma::QpAttr active_rtr = rig.near.attributes(id, 2);
  ucma::QpAttr active_rts = rig.near.attributes(id, 3);

  // PSNs of one end are those that the other expects, and depths fit the far end's.
  CHECK(active_rts.send_psn == passive_rtr.receive_psn);
  CHECK(passive_rts.send_psn == active_rtr.receive_psn);
  CHECK(active_rtr.remote_qpn == 0x222);
  CHECK(passive_rtr.remote_qpn == 0x111);
  CHECK(passive_rtr.max_dest_rd_atomic == 2);
  CHECK(passive_rts.max_rd_atomic == 3);
  CHECK(active_rts.max_rd_atomic == 3);
  CHECK(active_rtr.path_mtu == 5);
  CHECK(active_rtr.path.is_global == 1);
  CHECK(active_rtr.path.dgid == gids_of(rig.world.device("mb_1").port().spec())[1]);
  CHECK(active_rtr.path.sgid_index == 1);
  CHECK(active_rtr.mask == (1u | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20));
  CHECK(active_rts.mask == (1u | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16));
  CHECK(active_rts.retry_count == 5);
  CHECK(active_rts.timeout == 17);

  rig.near.confirm(id);
  rig.pass();
  CHECK(rig.far.expect(CmEventType::kEstablished).uid == 0xa1);
  rig.wire.expect("req rep rtu");

  rig.near.must(ucma::Command::kDisconnect, ucma::Disconnect{id});
  rig.pass();
  rig.far.expect(CmEventType::kDisconnected);
  CHECK(rig.near.quiet());  // until the far end has answered
  rig.far.must(ucma::Command::kDisconnect, ucma::Disconnect{request.id});
  rig.pass();
  rig.near.expect(CmEventType::kDisconnected);
  rig.wire.expect("dreq drep");
  rig.pass(kSecond);
  rig.near.expect(CmEventType::kTimewaitExit);
  rig.far.expect(CmEventType::kTimewaitExit);
  CHECK(rig.near.destroy(id) == 5);
  CHECK(rig.far.destroy(request.id) == 3);
  CHECK(rig.far.destroy(listener) == 1);
  CHECK(rig.ucma.ids() == 0);
  rig.pass();
  for (const char* device : {"mb_0", "mb_1"}) CHECK(rig.manager(device).connections() == 0);
  rig.wire.expect("");
}

TEST_CASE("cm: a lost or duplicated message is repaired, and takes effect once") {
  struct Row {
    const char* kind;
    const char* fates;
    const char* said;
  };
  const Row rows[] = {
      {"req", "--", "req req req rep rtu dreq drep"},
      {"req", "2", "req mra rep rtu dreq drep"},
      {"rep", "-", "req rep req rep rep mra rtu dreq drep"},
      {"rep", "2", "req rep mra rtu dreq drep"},
      {"rtu", "-", "req rep rtu rep rtu dreq drep"},
      {"rtu", "2", "req rep rtu dreq drep"},
      {"dreq", "-", "req rep rtu dreq dreq drep"},
      {"dreq", "2", "req rep rtu dreq drep"},
      {"drep", "-", "req rep rtu dreq drep dreq drep"},
      {"drep", "2", "req rep rtu dreq drep"},
  };
  for (const Row& row : rows) {
    INFO(row.kind << " " << row.fates);
    CmRig rig;
    rig.wire.fate(row.kind, row.fates);
    uint32_t listener = rig.far.create(0xa0);
    rig.far.listen(listener, rig.address("mb_1", 7000));
    uint32_t id = rig.near.create(0xb0);
    rig.near.resolve(id, rig.address("mb_1", 7000));
    rig.near.connect(id, 0x111);
    rig.pass(row.kind == std::string("req") && row.fates[0] == '-' ? 10 * kSecond : kMillisecond);
    uint32_t far = rig.far.expect(CmEventType::kConnectRequest).id;
    rig.far.accept(far, 0xa1, 0x222);
    rig.pass(row.kind == std::string("rep") && row.fates[0] == '-' ? 5 * kSecond : kMillisecond);
    rig.near.expect(CmEventType::kConnectResponse);
    rig.near.confirm(id);
    rig.pass(5 * kSecond);
    rig.far.expect(CmEventType::kEstablished);
    rig.near.must(ucma::Command::kDisconnect, ucma::Disconnect{id});
    rig.pass(row.kind == std::string("dreq") && row.fates[0] == '-' ? 5 * kSecond : kMillisecond);
    rig.far.expect(CmEventType::kDisconnected);
    rig.far.must(ucma::Command::kDisconnect, ucma::Disconnect{far});
    rig.pass();
    if (row.kind == std::string("drep") && row.fates[0] == '-') rig.pass(5 * kSecond);
    rig.near.expect(CmEventType::kDisconnected);
    rig.wire.expect(row.said);
  }
}

TEST_CASE("cm: a peer that does not answer is unreachable after the standard's time and retries") {
  CmRig rig;
  uint32_t id = rig.near.create(0xb0);
  rig.near.resolve(id, rig.address("mb_1", 7000));
  rig.wire.fate("req", std::string(16, '-'));
  rig.near.connect(id, 0x111);
  // 16 REQs, one in 4.096 us x 2^20 and twice the packet's life.
  TimeNs each = (TimeNs{4096} << 20) + (TimeNs{8192} << 16);
  rig.pass(16 * each - kMillisecond);
  CHECK(rig.near.quiet());
  rig.pass(2 * kMillisecond);
  rig.near.expect(CmEventType::kUnreachable, -ETIMEDOUT);
  CHECK(rig.manager("mb_0").counters(rig.world.device("mb_0").port()).retried[0].get() == 15);
  CHECK(std::get<cm::Rej>(rig.wire.messages.back()).reason == cm::kTimeout);
}

TEST_CASE("cm: a rejected connection gets the matching reason") {
  CmRig rig;
  uint32_t id = rig.near.create(0xb0);
  rig.near.resolve(id, rig.address("mb_1", 7000));
  rig.near.connect(id, 0x111);
  rig.pass(CmManager::kGrace - kMillisecond);
  CHECK(rig.near.quiet());  // a listener may still come
  rig.pass(2 * kMillisecond);
  rig.near.expect(CmEventType::kRejected, cm::kInvalidServiceId);

  uint32_t early = rig.near.create(0xb1);
  rig.near.resolve(early, rig.address("mb_1", 7000));
  rig.near.connect(early, 0x112);
  rig.pass();
  uint32_t listener = rig.far.create(0xa0);
  rig.far.listen(listener, rig.address("mb_1", 7000), 1);
  rig.far.destroy(rig.far.expect(CmEventType::kConnectRequest).id);
  rig.pass();
  rig.near.expect(CmEventType::kRejected, cm::kConsumerReject);
  auto begin = [&](uint32_t qpn) {
    uint32_t fresh = rig.near.create(0xb0 + qpn);
    rig.near.resolve(fresh, rig.address("mb_1", 7000));
    rig.near.connect(fresh, qpn);
    rig.pass();
    return fresh;
  };
  begin(1);
  begin(2);
  rig.near.expect(CmEventType::kRejected, cm::kConsumerReject);  // the backlog is full
  uint32_t far = rig.far.expect(CmEventType::kConnectRequest).id;
  ucma::Reject no{far, 3, 0, {}, {'n', 'o', '!'}};
  rig.far.must(ucma::Command::kReject, no);
  rig.pass();
  ucma::EventAnswer refused = rig.near.expect(CmEventType::kRejected, cm::kConsumerReject);
  CHECK(text_of(refused.connection) == "no!");

  // A user that waits for an answer, and one whose far end leaves.
  begin(3);
  rig.far.destroy(rig.far.expect(CmEventType::kConnectRequest).id);
  rig.pass();
  rig.near.expect(CmEventType::kRejected, cm::kConsumerReject);
  uint32_t gone = begin(4);
  rig.near.destroy(gone);
  rig.pass();
  CHECK(rig.far.channel().events() == 1);  // its user has not read it yet
  uint32_t late = rig.far.expect(CmEventType::kConnectRequest).id;
  CHECK(rig.far.call(ucma::Command::kAccept, ucma::Accept{1, rig.far.parameters(5), late, 0, {}}) ==
        EINVAL);
}

TEST_CASE("cm: a dead process leaves nothing behind, and its peers are told") {
  CmRig rig;
  CmRig::Pair ids = rig.connected();
  rig.ucma.close(1);
  rig.pass();
  rig.far.expect(CmEventType::kDisconnected);
  rig.wire.expect("req rep rtu dreq");
  rig.far.destroy(ids.far);
  rig.far.destroy(ids.listener);
  CHECK(rig.ucma.ids() == 0);
  rig.pass(kMinutes);
  for (const char* device : {"mb_0", "mb_1"}) CHECK(rig.manager(device).connections() == 0);
  rig.ucma.open(1, {}, [] {});
}

TEST_CASE("cm: a connection ends if its peer is silent, or has forgotten it") {
  CmRig rig;
  CmRig::Pair ids = rig.connected();
  SECTION("silent") {
    rig.wire.fate("dreq", std::string(16, '-'));
    rig.near.must(ucma::Command::kDisconnect, ucma::Disconnect{ids.near});
    rig.pass(kMinutes);
    rig.near.expect(CmEventType::kDisconnected);
  }
  SECTION("forgotten") {
    rig.wire.fate("dreq", "-");
    rig.ucma.close(2);  // its DREQ is lost
    rig.pass(kSecond);
    rig.near.must(ucma::Command::kDisconnect, ucma::Disconnect{ids.near});
    rig.pass();
    rig.near.expect(CmEventType::kDisconnected);
    rig.ucma.open(2, {}, [] {});
  }
}

TEST_CASE("cm: a device that leaves removes its ids") {
  CmRig rig;
  CmRig::Pair ids = rig.connected();
  rig.world.device("mb_0").leave();
  rig.near.expect(CmEventType::kDeviceRemoval);
  CHECK(rig.near.call(ucma::Command::kConnect,
                      ucma::Connect{rig.near.parameters(1), ids.near, 0, {}}) == ENODEV);
  rig.world.device("mb_0").arrive();
  uint32_t again = rig.near.create(0xb1);
  rig.near.resolve(again, rig.address("mb_1", 7000));
  rig.near.connect(again, 0x333);
  rig.pass();
  rig.far.expect(CmEventType::kConnectRequest);
}

TEST_CASE("cm: a new connection of the same queue pair ends the old one as stale") {
  CmRig rig;
  rig.connected();
  rig.pass();
  uint32_t again = rig.near.create(0xb1);
  rig.near.resolve(again, rig.address("mb_1", 7000));
  rig.near.connect(again, 0x111);
  rig.pass();
  rig.near.expect(CmEventType::kDisconnected);  // old connection
  rig.near.expect(CmEventType::kRejected, cm::kStaleConnection);
}

TEST_CASE("cm: a datagram service is resolved to its queue pair") {
  CmRig rig;
  uint32_t listener = rig.far.create(0xa0, PortSpace::kUdp);
  rig.far.listen(listener, rig.address("mb_1", 7000));
  uint32_t id = rig.near.create(0xb0, PortSpace::kUdp);
  rig.near.resolve(id, rig.address("mb_1", 7000));
  CHECK(rig.near.attributes(id, 1).qkey == CmId::kUdpQkey);
  rig.wire.fate("sidr_req", "-2");
  rig.wire.fate("sidr_rep", "-");
  rig.near.connect(id, 0, "who is there");
  rig.pass(5 * kSecond);
  ucma::EventAnswer request = rig.far.expect(CmEventType::kConnectRequest);
  CHECK(std::string(reinterpret_cast<char*>(request.datagram.private_data.data())) ==
        "who is there");
  rig.far.accept(request.id, 0xa1, 0x222, "me");
  rig.pass(10 * kSecond);
  ucma::EventAnswer answer = rig.near.expect(CmEventType::kEstablished);
  CHECK(answer.datagram.qpn == 0x222);
  CHECK(answer.datagram.qkey == CmId::kUdpQkey);
  CHECK(answer.datagram.path.dgid == gids_of(rig.world.device("mb_1").port().spec())[1]);
  CHECK(rig.far.quiet());
  rig.wire.expect("sidr_req sidr_req sidr_rep sidr_req sidr_rep");
  rig.near.destroy(id);
  rig.far.destroy(request.id);
  rig.pass();
  for (const char* device : {"mb_0", "mb_1"}) CHECK(rig.manager(device).questions() == 0);

  uint32_t other = rig.near.create(0xb1, PortSpace::kUdp);
  rig.near.resolve(other, rig.address("mb_1", 7001));
  rig.near.connect(other, 0);
  rig.pass();
  rig.near.expect(CmEventType::kUnreachable, cm::kSidrUnsupported);
}

TEST_CASE("cm: MADs that are malformed or not for the CM are counted, and change nothing") {
  CmRig rig;
  Port& from = rig.world.device("mb_0").port();
  PortCounters& counters = rig.world.counters("mb_1");
  AddressVector path{gids_of(from.spec())[1], gids_of(rig.world.device("mb_1").port().spec())[1]};
  cm::Mad mad = cm::emit(1, cm::Rtu{2, 3, {}});
  mad[1] = 0x03;  // class of an SA
  from.gsi().send(path, mad);
  from.gsi().send(path, std::span(mad).first(64));
  rig.world.scheduler.run_until(kMillisecond);
  CHECK(counters.rx_mads_discarded.get() == 2);
  from.gsi().send(path, cm::emit(1, cm::Rtu{2, 3, {}}));
  from.gsi().send(path, cm::emit(1, cm::Dreq{2, 3, 4, {}}));
  rig.pass();
  CHECK(counters.rx_mads_discarded.get() == 2);
  CHECK(rig.wire.messages.size() == 3);
  CHECK(std::get<cm::Drep>(rig.wire.messages.back()).remote_id == 2);
}
