// The unreliable services, and shared receive queues.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("UC: SENDs and WRITEs arrive whole, without acknowledgements") {
  Pair pair(QpType::kUc);
  pair.link.post(pair.link.receive(7, 0, 5000));
  pair.link.post(pair.link.receive(8, 50'000, 0));
  SendRequest send = pair.link.send(1, 0, 5000);
  send.op = SendOp::kSendImm;
  send.immediate = 5;
  pair.link.post(send);
  pair.link.post(pair.link.write(2, 10'000, 3000));
  SendRequest write = pair.link.write(3, 20'000, 1000);
  write.op = SendOp::kWriteImm;
  write.immediate = 6;
  pair.link.post(write);
  pair.run();
  auto sent = pair.sent();
  REQUIRE(sent.size() == 3);
  for (uint64_t i = 0; i < 3; ++i) {
    CHECK(sent[i].wr_id == i + 1);
    CHECK(sent[i].status == WcStatus::kSuccess);
  }
  auto received = pair.received();
  REQUIRE(received.size() == 2);
  CHECK(received[0].immediate == 5);
  CHECK(received[0].byte_len == 5000);
  CHECK(received[1].immediate == 6);
  CHECK(received[1].opcode == WcOpcode::kReceiveWriteImm);
  CHECK(pair.same(0, 0, 5000));
  CHECK(pair.same(10'000, 10'000, 3000));
  CHECK(pair.same(20'000, 20'000, 1000));
  CHECK(pair.far().port_xmit_packets.get() == 0);
}

TEST_CASE("UC: a message that loses a packet is dropped, and its receive takes the next one") {
  for (uint32_t lost : {0u, 3u, 9u}) {
    INFO("packet " << lost << " of 10");
    Pair pair(QpType::kUc);
    Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
    meddler.script = [&](const wire::Parsed& parsed, Packet&) {
      return parsed.headers.bth.psn == lost;
    };
    pair.link.post(pair.link.receive(7, 0, 2560));
    pair.link.post(pair.link.receive(8, 3000, 2560));
    for (uint64_t i = 0; i < 3; ++i) pair.link.post(pair.link.send(i, i * 3000, 2560));
    pair.run();
    for (const Completion& one : pair.sent()) CHECK(one.status == WcStatus::kSuccess);
    auto received = pair.received();
    REQUIRE(received.size() == 2);
    CHECK(received[0].wr_id == 7);
    CHECK(received[1].wr_id == 8);
    CHECK(pair.same(3000, 0, 2560));
    CHECK(pair.same(6000, 3000, 2560));
    CHECK(pair.far().out_of_sequence.get() == 1);
    CHECK(pair.link.far->state() == QpState::kRts);
  }
}

TEST_CASE("UC: a request without the rights, or without a receive, is dropped silently") {
  Pair pair(QpType::kUc);
  SendRequest bad = pair.link.write(1, 0, 1000);
  bad.rkey ^= 1;
  pair.link.post(bad);
  pair.link.post(pair.link.send(2, 0, 100));  // there is no receive request
  pair.link.post(pair.link.write(3, 2000, 1000));
  pair.run();
  for (const Completion& one : pair.sent()) CHECK(one.status == WcStatus::kSuccess);
  CHECK(pair.same(2000, 2000, 1000));
  CHECK(pair.far_bytes()[0] == 0);
  CHECK(pair.far().resp_remote_access_errors.get() == 1);
  CHECK(pair.far().out_of_buffer.get() == 1);
  CHECK(pair.link.far->state() == QpState::kRts);
}

TEST_CASE("UC: a message longer than its receive is dropped, and the receive stays") {
  Pair pair(QpType::kUc);
  pair.link.post(pair.link.receive(7, 0, 1000));
  pair.link.post(pair.link.send(1, 0, 1001));
  pair.link.post(pair.link.send(2, 5000, 1000));
  pair.run();
  auto received = pair.received();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 7);
  CHECK(pair.same(5000, 0, 1000));
  CHECK(pair.far().resp_local_length_error.get() == 1);
}

TEST_CASE("UC and UD: a request completes when its last packet is delivered or dropped") {
  for (QpType type : {QpType::kUc, QpType::kUd}) {
    Pair pair(type);
    set(pair.world.link("mb_0-sw_0"), lossy(pair.world.link("mb_0-sw_0").parameters(), 1));
    pair.link.post(pair.link.send(1, 0, 200));
    pair.run();
    REQUIRE(pair.sent().size() == 1);
    CHECK(pair.world.link("mb_0-sw_0").losses().lost.get() == 1);
  }
}

TEST_CASE("UD: a datagram carries its routing header, its sender and its immediate") {
  Pair pair(QpType::kUd);
  std::fill_n(pair.far_bytes().begin(), 1040, uint8_t{0x66});  // of an IPv6 header, by its version
  pair.link.post(pair.link.receive(7, 0, 40 + 1000));
  SendRequest send = pair.link.send(1, 100, 1000);
  send.op = SendOp::kSendImm;
  send.immediate = 99;
  send.path.traffic_class = 0x28;
  pair.link.post(send);
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  auto received = pair.received();
  REQUIRE(received.size() == 1);
  CHECK(received[0].byte_len == 1040);
  CHECK(received[0].grh == Grh::kIpv4);
  CHECK(received[0].source_qpn == pair.link.near->number());
  CHECK(received[0].immediate == 99);
  CHECK(pair.same(100, 40, 1000));
  // IPv4 stands in the last 20 of the 40 bytes.
  auto far = pair.far_bytes();
  CHECK(std::all_of(far.begin(), far.begin() + 20, [](uint8_t one) { return one == 0; }));
  CHECK(far[20] == 0x45);
  CHECK(far[21] == 0x28);
  CHECK(std::equal(far.begin() + 32, far.begin() + 36,
                   pair.link.near_device.port().spec().ipv4.begin()));
}

TEST_CASE("UD: a datagram with a wrong Q_Key, or without a receive that fits, is dropped") {
  Pair pair(QpType::kUd);
  SendRequest stranger = pair.link.send(1, 0, 100);
  stranger.qkey ^= 1;
  pair.link.post(stranger);
  pair.run();
  CHECK(pair.far().rx_unknown_qp.get() == 1);
  pair.link.post(pair.link.send(2, 0, 100));
  pair.run();
  CHECK(pair.far().out_of_buffer.get() == 1);
  pair.link.post(pair.link.receive(7, 0, 139));
  pair.link.post(pair.link.send(3, 0, 100));
  pair.run();
  CHECK(pair.far().resp_local_length_error.get() == 1);
  CHECK(pair.received().empty());
  pair.link.post(pair.link.send(4, 0, 99));  // fits the receive that the others have left
  pair.run();
  CHECK(pair.received().at(0).wr_id == 7);
  CHECK(pair.sent().size() == 4);
}

TEST_CASE(
    "UD: a datagram longer than the MTU is a local length error; the QP sends again from SQE") {
  Pair pair(QpType::kUd);
  pair.link.post(pair.link.receive(7, 0, 5000));
  pair.link.post(pair.link.send(1, 0, 4097));
  pair.link.post(pair.link.send(2, 0, 100));
  pair.run();
  auto sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kLocalLengthError);
  CHECK(sent[1].status == WcStatus::kFlushed);
  CHECK(pair.link.near->state() == QpState::kSqe);
  pair.link.post(pair.link.send(3, 0, 100));
  CHECK(pair.sent().at(0).status == WcStatus::kFlushed);
  REQUIRE(pair.link.near->modify(QpState::kRts));
  pair.link.post(pair.link.send(4, 0, 4096));
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(pair.received().at(0).byte_len == 4136);
}

TEST_CASE("services: an operation that a service lacks is refused when it is posted") {
  auto refused = [](Pair& pair, SendOp op) {
    SendRequest request = pair.link.write(1, 0, 8);
    request.op = op;
    Result<void> posted = pair.link.near->post(request);
    return !posted && posted.error().code == EINVAL;
  };
  Pair uc(QpType::kUc), ud(QpType::kUd);
  for (SendOp op : {SendOp::kRead, SendOp::kCompareSwap, SendOp::kFetchAdd, SendOp::kAtomicWrite}) {
    CHECK(refused(uc, op));
    CHECK(refused(ud, op));
  }
  CHECK(refused(ud, SendOp::kWrite));
  CHECK(refused(ud, SendOp::kWriteImm));
  CHECK(refused(uc, SendOp::kSendInvalidate));
}

TEST_CASE("SRQ: queue pairs share receives in order, and the limit is reported once") {
  World world;
  CompletionQueue cq(64);
  ReceiveQueue shared(16, Connection::kPd);
  Device& near = world.device("mb_0");
  Device& far = world.device("mb_1");
  Connection link(world, kPairArea, quick_attributes());  // gives its memory only
  fill(bytes_of(*link.near_memory), 5);
  QpInit init;
  init.pd = Connection::kPd;
  init.send_cq = init.receive_cq = &cq;
  std::vector<Qp*> senders, receivers;
  for (int i = 0; i < 2; ++i) {
    init.shared_receives = nullptr;
    senders.push_back(*near.create_qp(init));
    init.shared_receives = &shared;
    receivers.push_back(*far.create_qp(init));
    Connection::raise(*senders[i], *receivers[i], near, far, quick_attributes());
    Connection::raise(*receivers[i], *senders[i], far, near, quick_attributes());
  }
  CHECK(receivers[0]->post(link.receive(1, 0, 100)).error().code == EINVAL);
  int reached = 0;
  shared.set_limit(2, [&] { ++reached; });
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(shared.post(link.receive(100 + i, i * 1000, 1000)));
  for (uint64_t i = 0; i < 4; ++i) {
    SendRequest send = link.send(i, i * 1000, 1000);
    REQUIRE(senders[i % 2]->post(send));
    REQUIRE(world.run_idle());
    CHECK(reached == (i >= 2));
  }
  std::vector<uint64_t> got;
  for (const Completion& one : Connection::poll(cq)) {
    if (one.opcode != WcOpcode::kReceive) continue;
    CHECK(one.qpn == receivers[got.size() % 2]->number());
    got.push_back(one.wr_id);
  }
  CHECK(got == std::vector<uint64_t>{100, 101, 102, 103});
  // Requests left in an SRQ are not flushed with one queue pair.
  REQUIRE(shared.post(link.receive(9, 0, 10)));
  REQUIRE(receivers[0]->modify(QpState::kError));
  CHECK(Connection::poll(cq).empty());
  CHECK(shared.size() == 1);
  for (Qp* qp : senders) near.destroy_qp(*qp);
  for (Qp* qp : receivers) far.destroy_qp(*qp);
}

// IBTA 10.2.9.2: receives of an SRQ are of the SRQ's protection domain.
TEST_CASE("SRQ: memory of its receives is checked against its own protection domain") {
  for (uint32_t pd : {Connection::kPd, Connection::kPd + 1}) {
    World world;
    CompletionQueue cq(64);
    Device& near = world.device("mb_0");
    Device& far = world.device("mb_1");
    Connection link(world, kPairArea, quick_attributes());  // gives its memory only
    ReceiveQueue shared(16, pd);
    QpInit init;
    init.send_cq = init.receive_cq = &cq;
    init.pd = Connection::kPd;
    Qp& sender = **near.create_qp(init);
    init.pd = Connection::kPd + 1;
    init.shared_receives = &shared;
    Qp& receiver = **far.create_qp(init);
    Connection::raise(sender, receiver, near, far, quick_attributes());
    Connection::raise(receiver, sender, far, near, quick_attributes());
    REQUIRE(shared.post(link.receive(1, 0, 1000)));
    REQUIRE(sender.post(link.send(2, 0, 1000)));
    REQUIRE(world.run_idle());
    std::vector<WcStatus> received;
    for (const Completion& one : Connection::poll(cq)) {
      if (one.wr_id == 1) received.push_back(one.status);
    }
    bool allowed = pd == Connection::kPd;
    CHECK(received ==
          std::vector<WcStatus>{allowed ? WcStatus::kSuccess : WcStatus::kLocalProtectionError});
    near.destroy_qp(sender);
    far.destroy_qp(receiver);
  }
}

TEST_CASE("UD: a Q_Key with its highest bit set means the queue pair's own") {
  Pair pair(QpType::kUd);
  pair.link.post(pair.link.receive(7, 0, 200));
  SendRequest send = pair.link.send(1, 0, 100);
  send.qkey = 0x80000000;
  CHECK(pair.outcome(send) == WcStatus::kSuccess);
  CHECK(pair.received().size() == 1);
}
