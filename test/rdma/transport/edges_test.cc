// Edge cases, regressions among them: where losses, slow memory, changed rights, states and
// teardown meet.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Pair whose memory answers late at either end, or at once.
struct SlowPair {
  World world;
  std::shared_ptr<SlowMemory> near_memory, far_memory;
  std::unique_ptr<Connection> link;
  SlowPair(bool near_slow, bool far_slow, QpType type = QpType::kRc,
           QpAttributes attributes = quick_attributes(), TimeNs longest = 5 * kMicrosecond,
           size_t area = kPairArea) {
    if (near_slow) near_memory = std::make_shared<SlowMemory>(world, area, 1, longest);
    if (far_slow) far_memory = std::make_shared<SlowMemory>(world, area, 2, longest);
    link = std::make_unique<Connection>(world, area, attributes, near_memory, far_memory, type);
    fill(bytes_of(*link->near_memory), 5);
  }
  std::vector<Completion> sent() { return Connection::poll(link->near_cq); }
  std::vector<Completion> received() { return Connection::poll(link->far_cq); }
  void run(TimeNs time) { world.scheduler.run_until(world.scheduler.now() + time); }
};

}  // namespace

TEST_CASE("fabric: a fabric may be destroyed while packets are under way") {
  for (TimeNs time : {200, 1'000, 3'000, 8'000}) {
    Pair pair(QpType::kUc);
    pair.link.post(pair.link.receive(7, 0, 9000));
    pair.link.post(pair.link.send(1, 0, 9000));
    pair.world.scheduler.run_until(time);
    CHECK(pair.world.outstanding.packets > 0);
  }
}

TEST_CASE("responder: an atomic that memory still executes survives a reset of its queue pair") {
  QpAttributes attributes = quick_attributes();
  attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 1;
  SlowPair pair(false, true, QpType::kRc, attributes, 50 * kMicrosecond);
  Connection& link = *pair.link;
  link.post(link.fetch_add(1, 0, 5, 0));
  while (pair.far_memory->asked == 0) REQUIRE(pair.world.scheduler.run_one(kSecond));
  for (Qp* qp : {link.near, link.far}) REQUIRE(qp->modify(QpState::kReset));
  attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 16;
  attributes.access = kRemoteRead | kRemoteAtomic;
  Connection::raise(*link.near, *link.far, link.near_device, link.far_device, attributes);
  Connection::raise(*link.far, *link.near, link.far_device, link.near_device, attributes);
  link.post(link.fetch_add(2, 0, 7, 8));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  uint64_t original = 0;
  std::memcpy(&original, bytes_of(*link.near_memory).data() + 8, sizeof original);
  CHECK(original == 5);
}

TEST_CASE(
    "UC: duplicates and late packets are dropped, and nothing arrives twice or out of order") {
  for (uint32_t length : {0u, 200u, 1000u}) {
    Pair pair(QpType::kUc);
    Meddler::Odds odds;
    odds.duplicate = 1;
    Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 3, odds);
    for (uint64_t i = 0; i < 40; ++i) pair.link.post(pair.link.receive(i, i * 1000, 1000));
    for (uint32_t i = 0; i < 20; ++i) {
      SendRequest send = pair.link.send(i, i * 1000, length);
      send.op = SendOp::kSendImm;
      send.immediate = i;
      pair.link.post(send);
    }
    pair.run();
    auto received = pair.received();
    REQUIRE(received.size() == 20);
    for (uint32_t i = 0; i < 20; ++i) CHECK(received[i].immediate == i);
    CHECK(pair.same(0, 0, 20'000) == (length == 1000));
    CHECK(pair.far().duplicate_request.get() >= 20);
  }
}

TEST_CASE("UC: a message of which memory refused a part never completes as a success") {
  for (SendOp op : {SendOp::kSendImm, SendOp::kWriteImm}) {
    for (uint32_t refused : {0u, 1u, 3u}) {
      INFO("operation " << static_cast<int>(op) << ", packet " << refused << " of 4");
      SlowPair pair(false, true, QpType::kUc);
      Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
      meddler.script = [&](const wire::Parsed& parsed, Packet&) {
        pair.far_memory->failing = parsed.headers.bth.psn == refused;
        return false;
      };
      pair.link->post(pair.link->receive(7, 0, 1024));
      SendRequest request = pair.link->write(1, 0, 1024);
      request.op = op;
      pair.link->post(request);
      REQUIRE(pair.world.run_idle());
      auto received = pair.received();
      REQUIRE(received.size() == 1);
      bool send = op == SendOp::kSendImm;
      CHECK(received[0].status ==
            (send ? WcStatus::kLocalProtectionError : WcStatus::kLocalAccessError));
      CHECK(pair.link->far->state() == QpState::kError);
    }
  }
}

TEST_CASE("UD: a datagram that is too long does not hold up others") {
  SlowPair pair(false, true, QpType::kUd);
  for (uint64_t i = 0; i < 20; ++i) pair.link->post(pair.link->receive(i, i * 200, 140));
  for (uint64_t i = 0; i < 20; ++i) {
    pair.link->post(pair.link->send(i, i * 100, 100));
    if (i == 1) pair.link->post(pair.link->send(100, 0, 150));
  }
  REQUIRE(pair.world.run_idle());
  CHECK(pair.received().size() == 20);
}

TEST_CASE("UC: the receive of a lost message waits only for its own memory") {
  SlowPair pair(false, true, QpType::kUc);
  Connection& link = *pair.link;
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  meddler.script = [](const wire::Parsed& parsed, Packet&) { return parsed.headers.bth.psn == 1; };
  link.post(link.receive(7, 0, 1024));
  link.post(link.send(1, 0, 1024));
  for (uint64_t i = 0; i < 40; ++i) link.post(link.write(i, 8000, 4000));
  link.post(link.send(2, 2000, 1024));
  REQUIRE(pair.world.run_idle());
  auto received = pair.received();
  REQUIRE(received.size() == 1);
  auto near = bytes_of(*link.near_memory), far = bytes_of(*link.far_memory);
  CHECK(std::equal(near.begin() + 2000, near.begin() + 3024, far.begin()));
}

TEST_CASE("window: its rights are checked again for each packet") {
  Pair pair;
  MemoryTable& table = pair.link.far_device.memory();
  uint32_t key = *table.add_window(Connection::kPd), qpn = pair.link.far->number();
  MemoryTable::Binding binding{key, pair.link.far_key, pair.link.far_address, 4000,
                               kRemoteWrite | kRemoteRead};
  REQUIRE(table.bind(binding, Connection::kPd, qpn));
  Watch watch(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.psn != 2) return false;
    REQUIRE(table.invalidate(key, qpn));
    binding.access = kRemoteRead;  // the same key
    REQUIRE(table.bind(binding, Connection::kPd, qpn));
    return false;
  });
  SendRequest write = pair.link.write(1, 0, 1024);
  write.rkey = key;
  CHECK(pair.outcome(write) == WcStatus::kRemoteAccessError);
  CHECK(pair.same(0, 0, 512));
  for (size_t i = 512; i < 1024; ++i) REQUIRE(pair.far_bytes()[i] == 0);
}

TEST_CASE("window: its key cannot be used as a local key") {
  Pair pair;
  MemoryTable& table = pair.link.far_device.memory();
  uint32_t key = *table.add_window(Connection::kPd);
  MemoryTable::Binding binding{key, pair.link.far_key, pair.link.far_address, 4000, kRemoteRead};
  REQUIRE(table.bind(binding, Connection::kPd, pair.link.far->number()));
  SendRequest send;
  send.sges = Sge{pair.link.far_address, 100, key};
  REQUIRE(pair.link.far->post(send));
  pair.run();
  CHECK(pair.received().at(0).status == WcStatus::kLocalProtectionError);
}

TEST_CASE("device: a destroyed queue pair transmits nothing more") {
  SlowPair pair(false, true);
  Connection& link = *pair.link;
  link.post(link.read(1, 0, 30'000));
  SendRequest bad = link.write(2, 0, 10);
  bad.rkey ^= 1;
  link.post(bad);  // its NAK waits for the responses
  while (pair.world.counters("mb_1").resp_remote_access_errors.get() == 0) {
    REQUIRE(pair.world.scheduler.run_one(kSecond));
  }
  pair.run(20 * kMicrosecond);
  Counter& transmitted = pair.world.counters("mb_1").port_xmit_packets;
  uint64_t before = transmitted.get();
  CHECK(before < 100);
  pair.link.reset();
  pair.run(kMillisecond);
  CHECK(transmitted.get() == before);
}

TEST_CASE("responder: a READ whose memory has gone is refused although a later NAK is waiting") {
  QpAttributes attributes = quick_attributes();
  attributes.window = 1024;  // large enough for the SEND to go at once
  SlowPair pair(false, true, QpType::kRc, attributes, 5 * kMicrosecond, 512 * 1024);
  Connection& link = *pair.link;
  link.post(link.read(1, 0, 400'000));  // longer than the prefetch
  SendRequest bad = link.write(2, 0, 10);
  bad.op = SendOp::kSend;  // fails differently: its receive names no memory
  link.post(link.receive(7, 1 << 24, 10));
  link.post(bad);
  while (link.far->state() != QpState::kError) REQUIRE(pair.world.scheduler.run_one(kSecond));
  REQUIRE(link.far_device.memory().remove(link.far_key));
  REQUIRE(pair.world.run_idle());
  auto sent = pair.sent();
  CHECK(sent.at(0).status == WcStatus::kRemoteAccessError);
  CHECK(sent.at(1).status == WcStatus::kFlushed);
}

TEST_CASE("requester: responses that wait for memory are bounded, and the READ succeeds") {
  constexpr size_t kArea = 4 << 20;
  QpAttributes attributes = quick_attributes();
  attributes.timeout = 12;
  SlowPair pair(true, false, QpType::kRc, attributes, 5 * kMillisecond, kArea);
  fill(bytes_of(*pair.link->far_memory), 6);
  pair.link->post(pair.link->read(1, 0, kArea));
  int64_t most = 0;
  while (pair.world.outstanding.any()) {
    REQUIRE(pair.world.scheduler.run_one(60 * kSecond));
    most = std::max<int64_t>(most, pair.world.outstanding.packets);
  }
  CHECK(most < 6000);  // 16384 responses in all
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  auto near = bytes_of(*pair.link->near_memory), far = bytes_of(*pair.link->far_memory);
  CHECK(std::equal(near.begin(), near.end(), far.begin()));
}

TEST_CASE("requester: at most half the PSN space is unacknowledged") {
  World world;
  Connection link(world, kMaxMessage + 4096, quick_attributes());
  bool answered = false;
  int reads_before = 0, reads = 0;
  Meddler back(world, world.link("sw_0-mb_0"), 1, {});
  back.script = [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.opcode != wire::Opcode::kRcAck) return false;
    answered = world.scheduler.now() > 100 * kMicrosecond;
    return !answered;
  };
  Meddler forth(world, world.link("sw_0-mb_1"), 1, {});
  forth.script = [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.opcode != wire::Opcode::kRcReadRequest) return false;
    (answered ? reads : reads_before) += 1;
    return true;
  };
  link.post(link.write(1, 0, 100));
  link.post(link.read(2, 4096, static_cast<uint32_t>(kMaxMessage)));  // 2^23 responses
  world.scheduler.run_until(500 * kMicrosecond);
  CHECK(reads_before == 0);
  CHECK(reads > 0);
}

TEST_CASE("qp: setting its port again keeps what is to be transmitted") {
  Pair pair;
  pair.link.post(pair.link.read(1, 0, 60'000));
  pair.world.scheduler.run_until(15 * kMicrosecond);
  REQUIRE(pair.link.far->modify(QpState::kSqd));
  QpAttributes attributes;
  attributes.port = 1;
  REQUIRE(pair.link.far->modify(QpState::kSqd, attributes, kQpPort));
  pair.run();
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

TEST_CASE("requester: a READ under way is retried even when no further one is allowed") {
  Pair pair;
  int seen = 0;
  Watch watch(pair, "sw_0-mb_1", [&](const wire::Parsed&, Packet&) { return seen++ == 0; });
  pair.link.post(pair.link.read(1, 0, 1000));
  pair.world.scheduler.run_until(10 * kMicrosecond);
  REQUIRE(pair.link.near->modify(QpState::kSqd));
  QpAttributes attributes;
  attributes.max_rd_atomic = 0;
  REQUIRE(pair.link.near->modify(QpState::kSqd, attributes, kQpMaxRdAtomic));
  REQUIRE(pair.world.run_idle(kSecond));
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
}

TEST_CASE("memory: a region ends below the end of the address space") {
  MemoryTable table;
  auto memory = LocalMemory::create(8192);
  CHECK(table.add(memory, ~uint64_t{0} - 4095, 8192, 1, 0).error().code == EINVAL);
  Result<uint32_t> key = table.add(memory, ~uint64_t{0} - 8191, 8192, 1, 0);
  REQUIRE(key);
  CHECK(table.allow(*key, 1, 0, 0, ~uint64_t{0}, 1));
  CHECK_FALSE(table.allow(*key, 1, 0, 0, ~uint64_t{0}, 2));
}
