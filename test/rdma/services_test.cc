// The unreliable services, shared receive queues, memory windows, and the states of a queue pair.
#include <catch2/catch.hpp>

#include "rdma/qp_transitions.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kArea = 64 * 1024;

QpAttributes small_packets() {
  QpAttributes attributes;
  attributes.path_mtu = 256;
  attributes.timeout = 5;
  attributes.min_rnr_timer = 1;
  return attributes;
}

struct Pair {
  World world;
  Connection link;
  explicit Pair(QpType type) : link(world, kArea, small_packets(), nullptr, nullptr, type) {
    fill(near_bytes(), 5);
  }
  std::span<uint8_t> near_bytes() { return bytes_of(*link.near_memory); }
  std::span<uint8_t> far_bytes() { return bytes_of(*link.far_memory); }
  std::vector<Completion> sent() { return Connection::poll(link.near_cq); }
  std::vector<Completion> received() { return Connection::poll(link.far_cq); }
  PortCounters& far() { return world.counters("mb_1"); }
  bool same(uint64_t near_at, uint64_t far_at, uint64_t length) {
    auto a = near_bytes().subspan(near_at, length), b = far_bytes().subspan(far_at, length);
    return std::equal(a.begin(), a.end(), b.begin());
  }
  void run() { REQUIRE(world.run_idle()); }
};

}  // namespace

TEST_CASE("UC: sends and writes arrive whole, without any answer") {
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

TEST_CASE("UC: what may not be done is dropped in silence") {
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

TEST_CASE("UC: a message longer than its receive is dropped, the receive stays") {
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
    CHECK(pair.world.link("mb_0-sw_0").counters().lost.get() == 1);
  }
}

TEST_CASE("UD: a datagram brings its routing header, its sender and its immediate") {
  Pair pair(QpType::kUd);
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
  CHECK(received[0].has_grh);
  CHECK(received[0].source_qpn == pair.link.near->number());
  CHECK(received[0].immediate == 99);
  CHECK(pair.same(100, 40, 1000));
  // IPv4 stands in the last 20 of the 40 bytes.
  auto far = pair.far_bytes();
  CHECK(far[0] == 0);
  CHECK(far[20] == 0x45);
  CHECK(far[21] == 0x28);
  CHECK(std::equal(far.begin() + 32, far.begin() + 36,
                   pair.link.near_device.port().spec().ipv4.begin()));
}

TEST_CASE("UD: a wrong Q_Key, no receive, or one too small: dropped, and nothing else happens") {
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
  pair.link.post(pair.link.send(4, 0, 99));  // it fits what the others left
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

TEST_CASE("services: what a service does not have is refused when it is posted") {
  auto refused = [](Pair& pair, SendOp op) {
    SendRequest request = pair.link.write(1, 0, 8);
    request.op = op;
    Result<void> posted = pair.link.near->post(request);
    return !posted && posted.error().code == EINVAL;
  };
  Pair uc(QpType::kUc), ud(QpType::kUd);
  for (SendOp op : {SendOp::kRead, SendOp::kCompareSwap, SendOp::kFetchAdd}) {
    CHECK(refused(uc, op));
    CHECK(refused(ud, op));
  }
  CHECK(refused(ud, SendOp::kWrite));
  CHECK(refused(ud, SendOp::kWriteImm));
  CHECK(refused(uc, SendOp::kSendInvalidate));
}

TEST_CASE("SRQ: queue pairs share receives in order, and the limit is told once") {
  World world;
  CompletionQueue cq(64);
  ReceiveQueue shared(16);
  Device& near = world.device("mb_0");
  Device& far = world.device("mb_1");
  Connection link(world, kArea, small_packets());  // for its memory
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
    Connection::raise(*senders[i], *receivers[i], near, far, small_packets());
    Connection::raise(*receivers[i], *senders[i], far, near, small_packets());
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
  // What nobody has taken is not flushed with one queue pair.
  REQUIRE(shared.post(link.receive(9, 0, 10)));
  REQUIRE(receivers[0]->modify(QpState::kError));
  CHECK(Connection::poll(cq).empty());
  CHECK(shared.size() == 1);
  for (Qp* qp : senders) near.destroy_qp(*qp);
  for (Qp* qp : receivers) far.destroy_qp(*qp);
}

namespace {

// A window of the far end over bytes 1000 to 2000 of its memory.
struct Windowed : Pair {
  uint32_t key = 0;
  uint8_t access = kRemoteWrite | kRemoteRead;
  Windowed() : Pair(QpType::kRc) { key = *link.far_device.memory().add_window(Connection::kPd); }
  SendRequest bind(uint64_t id) {
    SendRequest request;
    request.wr_id = id;
    request.op = SendOp::kBindWindow;
    request.rkey = key;
    request.bind_access = access;
    request.sges = Sge{link.far_address + 1000, 1000, link.far_key};
    return request;
  }
  WcStatus far_outcome(const SendRequest& request) {
    REQUIRE(link.far->post(request));
    run();
    return received().at(0).status;
  }
  WcStatus write(uint64_t offset, uint32_t length) {
    SendRequest request = link.write(1, offset, length);
    request.rkey = key;
    link.post(request);
    run();
    return sent().at(0).status;
  }
};

}  // namespace

TEST_CASE("window: what is bound may be used by its queue pair, to the byte, and no more") {
  {
    Windowed pair;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    CHECK(pair.write(1000, 1000) == WcStatus::kSuccess);
    CHECK(pair.same(1000, 1000, 1000));
    CHECK(pair.link.far_device.memory().remove(pair.link.far_key).error().code == EBUSY);
    CHECK(pair.write(1999, 2) == WcStatus::kRemoteAccessError);
  }
  {
    Windowed pair;
    CHECK(pair.write(1000, 1) == WcStatus::kRemoteAccessError);  // not bound yet
  }
  {
    Windowed pair;
    pair.access = kRemoteRead;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    CHECK(pair.write(1000, 1) == WcStatus::kRemoteAccessError);
  }
  {
    Windowed pair;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    Connection other(pair.world, kArea, small_packets());
    SendRequest request = pair.link.write(1, 1000, 10);
    request.rkey = pair.key;
    other.post(request);  // the far end of another queue pair
    request.sges = Sge{other.near_address, 10, other.near_key};
    pair.run();
    CHECK(Connection::poll(other.near_cq).at(0).status != WcStatus::kSuccess);
  }
}

TEST_CASE("window: invalidated by its owner or by the far end, it is of no use any more") {
  {
    Windowed pair;
    CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
    SendRequest invalidate;
    invalidate.op = SendOp::kLocalInvalidate;
    invalidate.rkey = pair.key;
    CHECK(pair.far_outcome(invalidate) == WcStatus::kSuccess);
    CHECK(pair.link.far_device.memory().remove(pair.link.far_key));
    CHECK(pair.write(1000, 10) == WcStatus::kRemoteAccessError);
  }
  Windowed pair;
  CHECK(pair.far_outcome(pair.bind(1)) == WcStatus::kSuccess);
  pair.link.post(pair.link.receive(5, 0, 100));
  SendRequest send = pair.link.send(2, 0, 100);
  send.op = SendOp::kSendInvalidate;
  send.rkey = pair.key;
  pair.link.post(send);
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  auto received = pair.received();
  CHECK(received.at(0).has_invalidated);
  CHECK(received.at(0).immediate == pair.key);
  // It may be bound again, under another key.
  pair.key = (pair.key & ~0xffu) | ((pair.key + 1) & 0xff);
  CHECK(pair.far_outcome(pair.bind(3)) == WcStatus::kSuccess);
  CHECK(pair.write(1000, 10) == WcStatus::kSuccess);
}

TEST_CASE("window: a send that invalidates what it may not is refused") {
  Windowed pair;
  pair.link.post(pair.link.receive(5, 0, 100));
  SendRequest send = pair.link.send(2, 0, 100);
  send.op = SendOp::kSendInvalidate;
  send.rkey = pair.link.far_key;  // a region
  pair.link.post(send);
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kRemoteAccessError);
  CHECK(pair.received().at(0).status == WcStatus::kRemoteInvalidRequest);
  CHECK(pair.link.far_device.memory().find(pair.link.far_key) != nullptr);
}

TEST_CASE("window: binding what cannot be bound is a bind error") {
  for (int wrong = 0; wrong < 4; ++wrong) {
    INFO(wrong);
    Windowed pair;
    SendRequest bind = pair.bind(1);
    if (wrong == 0) bind.sges = Sge{pair.link.far_address + kArea - 10, 11, pair.link.far_key};
    if (wrong == 1) bind.rkey = pair.link.far_key;
    if (wrong == 2) bind.sges = Sge{pair.link.far_address, 10, pair.key};
    if (wrong == 3) {
      uint32_t plain = *pair.link.far_device.memory().add(
          pair.link.far_memory, 0x5000000, kArea, Connection::kPd, kLocalWrite | kRemoteWrite);
      bind.sges = Sge{0x5000000, 10, plain};
    }
    CHECK(pair.far_outcome(bind) == WcStatus::kWindowBindError);
    CHECK(pair.link.far->state() == QpState::kError);
  }
}

TEST_CASE("qp: each transition takes exactly the attributes that the verbs manual lists") {
  using S = QpState;
  constexpr uint32_t kBase = kQpPkeyIndex | kQpPort | kQpAccess;
  struct Legal {
    QpType type;
    S from, to;
    uint32_t required, optional;
  };
  constexpr uint32_t kRtr = kQpPath | kQpPathMtu | kQpRemoteQpn | kQpReceivePsn;
  constexpr uint32_t kRcRtr = kRtr | kQpMaxDestRdAtomic | kQpMinRnrTimer;
  constexpr uint32_t kRcRts =
      kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpSendPsn | kQpMaxRdAtomic;
  constexpr uint32_t kUdBase = kQpPkeyIndex | kQpPort | kQpQkey;
  constexpr uint32_t kSqd = kQpPkeyIndex | kQpPort | kQpPath | kQpAccess;
  const Legal legal[] = {
      {QpType::kRc, S::kReset, S::kInit, kBase, 0},
      {QpType::kRc, S::kInit, S::kInit, 0, kBase},
      {QpType::kRc, S::kInit, S::kRtr, kRcRtr, kQpAccess | kQpPkeyIndex},
      {QpType::kRc, S::kRtr, S::kRts, kRcRts, kQpAccess | kQpMinRnrTimer},
      {QpType::kRc, S::kRts, S::kRts, 0, kQpAccess | kQpMinRnrTimer},
      {QpType::kRc, S::kRts, S::kSqd, 0, 0},
      {QpType::kRc, S::kSqd, S::kRts, 0, kQpAccess | kQpMinRnrTimer},
      {QpType::kRc, S::kSqd, S::kSqd, 0,
       kSqd | kQpTimeout | kQpRetryCount | kQpRnrRetry | kQpMaxRdAtomic | kQpMaxDestRdAtomic |
           kQpMinRnrTimer},
      {QpType::kUc, S::kReset, S::kInit, kBase, 0},
      {QpType::kUc, S::kInit, S::kInit, 0, kBase},
      {QpType::kUc, S::kInit, S::kRtr, kRtr, kQpAccess | kQpPkeyIndex},
      {QpType::kUc, S::kRtr, S::kRts, kQpSendPsn, kQpAccess},
      {QpType::kUc, S::kRts, S::kRts, 0, kQpAccess},
      {QpType::kUc, S::kRts, S::kSqd, 0, 0},
      {QpType::kUc, S::kSqd, S::kRts, 0, kQpAccess},
      {QpType::kUc, S::kSqd, S::kSqd, 0, kSqd},
      {QpType::kUc, S::kSqe, S::kRts, 0, kQpAccess},
      {QpType::kUd, S::kReset, S::kInit, kUdBase, 0},
      {QpType::kUd, S::kInit, S::kInit, 0, kUdBase},
      {QpType::kUd, S::kInit, S::kRtr, 0, kQpPkeyIndex | kQpQkey},
      {QpType::kUd, S::kRtr, S::kRts, kQpSendPsn, kQpQkey},
      {QpType::kUd, S::kRts, S::kRts, 0, kQpQkey},
      {QpType::kUd, S::kRts, S::kSqd, 0, 0},
      {QpType::kUd, S::kSqd, S::kRts, 0, kQpQkey},
      {QpType::kUd, S::kSqd, S::kSqd, 0, kQpPkeyIndex | kQpQkey},
      {QpType::kUd, S::kSqe, S::kRts, 0, kQpQkey},
  };
  for (QpType type : {QpType::kRc, QpType::kUc, QpType::kUd}) {
    for (S from : {S::kReset, S::kInit, S::kRtr, S::kRts, S::kSqd, S::kSqe, S::kError}) {
      for (S to : {S::kReset, S::kInit, S::kRtr, S::kRts, S::kSqd, S::kSqe, S::kError}) {
        INFO(name(type) << " " << name(from) << " to " << name(to));
        auto row = std::find_if(std::begin(legal), std::end(legal), [&](const Legal& one) {
          return one.type == type && one.from == from && one.to == to;
        });
        bool down = to == S::kReset || to == S::kError;
        if (row == std::end(legal)) {
          CHECK(bool(check_transition(type, from, to, 0)) == down);
          CHECK_FALSE(check_transition(type, from, to, kQpAccess));
          continue;
        }
        CHECK(check_transition(type, from, to, row->required));
        CHECK(check_transition(type, from, to, row->required | row->optional));
        for (uint32_t bit = 1; bit < kQpWindow; bit <<= 1) {
          INFO(bit);
          if (row->required & bit) {
            CHECK_FALSE(check_transition(type, from, to, row->required & ~bit));
          }
          bool taken = ((row->required | row->optional) & bit) != 0;
          CHECK(bool(check_transition(type, from, to, row->required | bit)) == taken);
        }
      }
    }
  }
}

TEST_CASE("qp: attributes out of range are refused, and nothing changes") {
  World world;
  CompletionQueue cq(4);
  QpInit init;
  init.send_cq = init.receive_cq = &cq;
  Qp& qp = **world.device("mb_0").create_qp(init);
  auto refused = [&](auto change) {
    QpAttributes attributes;
    change(attributes);
    return !qp.bring_up(attributes);
  };
  CHECK(refused([](QpAttributes& a) { a.pkey_index = 1; }));
  CHECK(qp.state() == QpState::kReset);
  CHECK(refused([](QpAttributes& a) { a.port = 2; }));
  CHECK(qp.state() == QpState::kReset);
  CHECK(refused([](QpAttributes& a) { a.path_mtu = 1500; }));
  CHECK(qp.state() == QpState::kInit);
  struct Bad {
    uint32_t bit;
    void (*change)(QpAttributes&);
  };
  const Bad rtr[] = {{kQpPathMtu, [](QpAttributes& a) { a.path_mtu = 128; }},
                     {kQpRemoteQpn, [](QpAttributes& a) { a.remote_qpn = 1 << 24; }},
                     {kQpReceivePsn, [](QpAttributes& a) { a.receive_psn = 1 << 24; }},
                     {kQpMinRnrTimer, [](QpAttributes& a) { a.min_rnr_timer = 32; }},
                     {kQpMaxDestRdAtomic, [](QpAttributes& a) { a.max_dest_rd_atomic = 17; }}};
  const Bad rts[] = {{kQpTimeout, [](QpAttributes& a) { a.timeout = 32; }},
                     {kQpRetryCount, [](QpAttributes& a) { a.retry_count = 8; }},
                     {kQpRnrRetry, [](QpAttributes& a) { a.rnr_retry = 8; }},
                     {kQpSendPsn, [](QpAttributes& a) { a.send_psn = 1 << 24; }},
                     {kQpMaxRdAtomic, [](QpAttributes& a) { a.max_rd_atomic = 17; }},
                     {kQpWindow, [](QpAttributes& a) { a.window = 0; }}};
  auto try_all = [&](const auto& rows, QpState to) {
    QpState from = qp.state();
    for (const Bad& bad : rows) {
      QpAttributes attributes;
      bad.change(attributes);
      uint32_t mask = required_attributes(QpType::kRc, from, to) | bad.bit;
      CHECK(qp.modify(to, attributes, mask).error().code == EINVAL);
      CHECK(qp.state() == from);
    }
    REQUIRE(qp.modify(to, {}, required_attributes(QpType::kRc, from, to)));
  };
  try_all(rtr, QpState::kRtr);
  try_all(rts, QpState::kRts);
}

TEST_CASE("qp: requests are taken in the states that have a use for them") {
  World world;
  CompletionQueue cq(64);
  QpInit init;
  init.send_cq = init.receive_cq = &cq;
  Qp& qp = **world.device("mb_0").create_qp(init);
  SendRequest send;
  ReceiveRequest receive;
  CHECK(qp.post(send).error().code == EINVAL);
  CHECK(qp.post(receive).error().code == EINVAL);
  REQUIRE(qp.modify(QpState::kInit, {}, kQpPkeyIndex | kQpPort | kQpAccess));
  CHECK(qp.post(send).error().code == EINVAL);
  CHECK(qp.post(receive));
  REQUIRE(qp.modify(QpState::kError));
  send.wr_id = 3;
  REQUIRE(qp.post(send));  // flushed at once
  REQUIRE(qp.post(receive));
  auto all = Connection::poll(cq);
  REQUIRE(all.size() == 3);
  for (const Completion& one : all) CHECK(one.status == WcStatus::kFlushed);
}

TEST_CASE("qp: while the send queue drains, what has begun goes on and the rest waits") {
  Pair pair(QpType::kRc);
  pair.link.post(pair.link.write(1, 0, 256 * 20));
  pair.link.post(pair.link.write(2, 10'000, 100));
  pair.world.scheduler.run_until(2 * kMicrosecond);
  REQUIRE(pair.link.near->modify(QpState::kSqd));
  pair.world.scheduler.run_until(kMillisecond);
  auto sent = pair.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].wr_id == 1);
  CHECK(pair.same(0, 0, 256 * 20));
  CHECK(pair.far_bytes()[10'000] == 0);
  REQUIRE(pair.link.near->modify(QpState::kRts));
  pair.run();
  CHECK(pair.sent().at(0).wr_id == 2);
}

TEST_CASE("qp: RESET forgets all requests without a completion, and the way up is open again") {
  for (bool slow : {false, true}) {
    World world;
    auto memory = [&](uint64_t seed) -> std::shared_ptr<Memory> {
      if (slow) return std::make_shared<SlowMemory>(world, kArea, seed, 50 * kMicrosecond);
      return LocalMemory::create(kArea);
    };
    Connection link(world, kArea, small_packets(), memory(1), memory(2));
    fill(bytes_of(*link.near_memory), 5);
    link.post(link.receive(9, 0, 100));
    for (uint64_t i = 0; i < 4; ++i) link.post(link.read(i, i * 3000, 3000));
    world.scheduler.run_until(10 * kMicrosecond);
    REQUIRE(link.near->modify(QpState::kReset));
    REQUIRE(link.far->modify(QpState::kReset));
    CHECK(Connection::poll(link.near_cq).size() < 4);  // what had ended before
    world.scheduler.run_until(kMillisecond);
    CHECK_FALSE(world.outstanding.any());
    CHECK(Connection::poll(link.near_cq).empty());
    CHECK(Connection::poll(link.far_cq).empty());
    Connection::raise(*link.near, *link.far, link.near_device, link.far_device, small_packets());
    QpAttributes attributes = small_packets();
    attributes.access = kRemoteWrite;
    Connection::raise(*link.far, *link.near, link.far_device, link.near_device, attributes);
    link.post(link.write(7, 20'000, 5000));
    REQUIRE(world.run_idle());
    auto sent = Connection::poll(link.near_cq);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == WcStatus::kSuccess);
  }
}
