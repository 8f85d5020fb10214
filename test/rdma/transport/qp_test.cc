// States of a queue pair, as the verbs manual defines them.
#include <catch2/catch.hpp>

#include "rdma/transport/qp_transitions.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

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
                     {kQpMaxDestRdAtomic, [](QpAttributes& a) { a.max_dest_rd_atomic = 129; }}};
  const Bad rts[] = {{kQpTimeout, [](QpAttributes& a) { a.timeout = 32; }},
                     {kQpRetryCount, [](QpAttributes& a) { a.retry_count = 8; }},
                     {kQpRnrRetry, [](QpAttributes& a) { a.rnr_retry = 8; }},
                     {kQpSendPsn, [](QpAttributes& a) { a.send_psn = 1 << 24; }},
                     {kQpMaxRdAtomic, [](QpAttributes& a) { a.max_rd_atomic = 129; }},
                     {kQpWindow, [](QpAttributes& a) { a.window = 0; }}};
  QpAttributes good;
  good.path.remote = mapped_ipv4({192, 0, 2, 1});
  auto try_all = [&](const auto& rows, QpState to) {
    QpState from = qp.state();
    for (const Bad& bad : rows) {
      QpAttributes attributes = good;
      bad.change(attributes);
      uint32_t mask = required_attributes(QpType::kRc, from, to) | bad.bit;
      CHECK(qp.modify(to, attributes, mask).error().code == EINVAL);
      CHECK(qp.state() == from);
    }
    REQUIRE(qp.modify(to, good, required_attributes(QpType::kRc, from, to)));
  };
  try_all(rtr, QpState::kRtr);
  try_all(rts, QpState::kRts);
}

TEST_CASE("qp: requests are accepted only in the states that use them") {
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

TEST_CASE("qp: while the send queue drains, started requests continue and the rest waits") {
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

TEST_CASE(
    "qp: RESET drops all requests without completions, and the queue pair can be raised again") {
  for (bool slow : {false, true}) {
    World world;
    auto memory = [&](uint64_t seed) -> std::shared_ptr<Memory> {
      if (slow) return std::make_shared<SlowMemory>(world, kPairArea, seed, 50 * kMicrosecond);
      return LocalMemory::create(kPairArea);
    };
    Connection link(world, kPairArea, quick_attributes(), memory(1), memory(2));
    fill(bytes_of(*link.near_memory), 5);
    link.post(link.receive(9, 0, 100));
    for (uint64_t i = 0; i < 4; ++i) link.post(link.read(i, i * 3000, 3000));
    world.scheduler.run_until(10 * kMicrosecond);
    REQUIRE(link.near->modify(QpState::kReset));
    REQUIRE(link.far->modify(QpState::kReset));
    CHECK(Connection::poll(link.near_cq).size() < 4);  // requests that had ended before
    world.scheduler.run_until(kMillisecond);
    CHECK_FALSE(world.outstanding.any());
    CHECK(Connection::poll(link.near_cq).empty());
    CHECK(Connection::poll(link.far_cq).empty());
    Connection::raise(*link.near, *link.far, link.near_device, link.far_device, quick_attributes());
    QpAttributes attributes = quick_attributes();
    attributes.access = kRemoteWrite;
    Connection::raise(*link.far, *link.near, link.far_device, link.near_device, attributes);
    link.post(link.write(7, 20'000, 5000));
    REQUIRE(world.run_idle());
    auto sent = Connection::poll(link.near_cq);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == WcStatus::kSuccess);
  }
}
