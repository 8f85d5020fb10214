// Rules of the reliable connection.
#include <catch2/catch.hpp>

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kArea = 64 * 1024;

struct Pair {
  World world;
  Connection connection;
  explicit Pair(QpAttributes attributes = {}) : connection(world, kArea, attributes) {
    fill(bytes_of(*connection.near_memory), 5);
  }
  std::vector<Completion> sent() { return Connection::poll(connection.near_cq); }
  std::vector<Completion> received() { return Connection::poll(connection.far_cq); }
  PortCounters& near() { return world.counters("mb_0"); }
  PortCounters& far() { return world.counters("mb_1"); }
};

QpAttributes quick(uint8_t retry = 7, uint8_t rnr_retry = 7) {
  QpAttributes attributes;
  attributes.path_mtu = 256;
  attributes.timeout = 5;  // 131 us
  attributes.retry_count = retry;
  attributes.rnr_retry = rnr_retry;
  attributes.min_rnr_timer = 1;  // 10 us
  return attributes;
}

void check_flushed(Qp& qp, std::vector<Completion> rest) {
  CHECK(qp.state() == QpState::kError);
  for (const Completion& completion : rest) CHECK(completion.status == WcStatus::kFlushed);
}

}  // namespace

TEST_CASE(
    "requester: a request that uses up its retries ends with retry exceeded, the rest is flushed") {
  Pair pair(quick(3));
  set(pair.world.link("mb_0-sw_0"), lossy(pair.world.link("mb_0-sw_0").parameters(), 1));
  for (uint64_t i = 0; i < 3; ++i) pair.connection.post(pair.connection.write(i, i * 1000, 100));
  REQUIRE(pair.world.run_idle());
  auto sent = pair.sent();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].status == WcStatus::kRetryExceeded);
  check_flushed(*pair.connection.near, {sent[1], sent[2]});
  CHECK(pair.near().local_ack_timeout_err.get() == 4);  // the first time and three retries
  CHECK(pair.near().req_transport_retries_exceeded.get() == 1);
  // Each waits 4.096 us x 2^timeout.
  CHECK(pair.world.scheduler.now() >= 4 * 131072);
  CHECK(pair.world.scheduler.now() < 4 * 131072 + 20 * kMicrosecond);
}

TEST_CASE("requester: timeout 0 waits for ever") {
  QpAttributes attributes = quick();
  attributes.timeout = 0;
  Pair pair(attributes);
  set(pair.world.link("mb_0-sw_0"), lossy(pair.world.link("mb_0-sw_0").parameters(), 1));
  pair.connection.post(pair.connection.write(1, 0, 100));
  CHECK_FALSE(pair.world.run_idle(3600 * kSecond));
  CHECK(pair.sent().empty());
}

TEST_CASE("requester: progress resets the retry count") {
  Pair pair(quick(1));
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  // Every packet is lost once: more losses in all than there are retries.
  std::vector<uint32_t> lost;
  meddler.script = [&](const wire::Parsed& parsed, Packet&) {
    uint32_t psn = parsed.headers.bth.psn;
    if (std::find(lost.begin(), lost.end(), psn) != lost.end()) return false;
    lost.push_back(psn);
    return true;
  };
  pair.connection.post(pair.connection.write(1, 0, 256 * 20));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(lost.size() == 20);
}

TEST_CASE("responder: a gap gets one NAK, and no other until the expected PSN arrives") {
  Pair pair(quick());
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  bool dropped = false;
  meddler.script = [&](const wire::Parsed& parsed, Packet&) {
    return parsed.headers.bth.psn == 3 && !std::exchange(dropped, true);
  };
  pair.connection.post(pair.connection.write(1, 0, 256 * 40));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(pair.near().packet_seq_err.get() == 1);
  CHECK(pair.far().out_of_sequence.get() > 1);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

TEST_CASE("responder: a duplicate write is acknowledged again and not executed again") {
  Pair pair(quick());
  Meddler back(pair.world, pair.world.link("sw_0-mb_0"), 1, {});
  int acknowledgements = 0;
  back.script = [&](const wire::Parsed&, Packet&) { return ++acknowledgements == 1; };
  pair.connection.post(pair.connection.write(1, 0, 100));
  // After the write was executed and its acknowledgement lost, the target is changed.
  auto far = bytes_of(*pair.connection.far_memory);
  while (acknowledgements == 0) REQUIRE(pair.world.scheduler.run_one(kSecond));
  REQUIRE(far[0] == bytes_of(*pair.connection.near_memory)[0]);
  far[0] ^= 0xff;
  uint8_t changed = far[0];
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(pair.far().duplicate_request.get() == 1);
  CHECK(far[0] == changed);
}

TEST_CASE("responder: a send without a receive request gets an RNR NAK and is sent again") {
  Pair pair(quick());
  pair.connection.post(pair.connection.send(1, 0, 1000));
  pair.world.scheduler.run_until(35 * kMicrosecond);
  CHECK(pair.far().out_of_buffer.get() >= 2);
  pair.connection.post(pair.connection.receive(7, 0, 1000));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  auto received = pair.received();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 7);
  CHECK(received[0].byte_len == 1000);
  CHECK(pair.near().rnr_nak_retry_err.get() == pair.far().out_of_buffer.get());
}

TEST_CASE("requester: RNR retries are counted, and 7 means unlimited") {
  Pair counted(quick(7, 2));
  counted.connection.post(counted.connection.send(1, 0, 10));
  REQUIRE(counted.world.run_idle());
  CHECK(counted.sent().at(0).status == WcStatus::kRnrRetryExceeded);
  CHECK(counted.near().rnr_nak_retry_err.get() == 3);
  CHECK(counted.near().req_rnr_retries_exceeded.get() == 1);

  Pair endless(quick(7, 7));
  endless.connection.post(endless.connection.send(1, 0, 10));
  CHECK_FALSE(endless.world.run_idle(10 * kMillisecond));
  CHECK(endless.near().rnr_nak_retry_err.get() > 100);
}

TEST_CASE("responder: a WRITE without access rights is a remote access error") {
  struct Case {
    const char* what;
    std::function<void(Connection&, SendRequest&)> spoil;
  };
  const Case cases[] = {
      {"no such key", [](Connection&, SendRequest& r) { r.rkey ^= 0x100000; }},
      {"key of an earlier region", [](Connection&, SendRequest& r) { r.rkey ^= 1; }},
      {"before the region", [](Connection&, SendRequest& r) { r.remote_address -= 1; }},
      {"past the region", [](Connection&, SendRequest& r) { r.remote_address += kArea - 99; }},
      {"address that wraps", [](Connection&, SendRequest& r) { r.remote_address = ~0ull - 10; }},
      {"region without the remote write right",
       [](Connection& c, SendRequest& r) {
         r.rkey = *c.far_device.memory().add(c.far_memory, c.far_address, kArea, Connection::kPd,
                                             kLocalWrite);
       }},
      {"region of another protection domain",
       [](Connection& c, SendRequest& r) {
         r.rkey = *c.far_device.memory().add(c.far_memory, c.far_address, kArea, 77,
                                             kLocalWrite | kRemoteWrite);
       }},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    Pair pair(quick());
    pair.connection.post(pair.connection.write(1, 0, 10));
    SendRequest bad = pair.connection.write(2, 0, 100);
    one.spoil(pair.connection, bad);
    pair.connection.post(bad);
    pair.connection.post(pair.connection.write(3, 0, 100));
    REQUIRE(pair.world.run_idle());
    auto sent = pair.sent();
    REQUIRE(sent.size() == 3);
    CHECK(sent[0].status == WcStatus::kSuccess);
    CHECK(sent[1].status == WcStatus::kRemoteAccessError);
    check_flushed(*pair.connection.near, {sent[2]});
    CHECK(pair.connection.far->state() == QpState::kError);
    CHECK(pair.far().resp_remote_access_errors.get() == 1);
    CHECK(pair.near().req_remote_access_errors.get() == 1);
  }
}

TEST_CASE("responder: an empty WRITE needs no access rights") {
  Pair pair(quick());
  SendRequest empty = pair.connection.write(1, 0, 0);
  empty.rkey = 0;
  pair.connection.post(empty);
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
}

TEST_CASE("requester: a source outside its region is a local protection error") {
  Pair pair(quick());
  pair.connection.post(pair.connection.write(1, 0, 5000));
  SendRequest bad = pair.connection.write(2, 0, 100);
  bad.sges = Sge{pair.connection.near_address + kArea - 50, 100, pair.connection.near_key};
  pair.connection.post(bad);
  REQUIRE(pair.world.run_idle());
  auto sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kLocalProtectionError);
  CHECK(pair.connection.near->state() == QpState::kError);
}

TEST_CASE("responder: a send longer than its receive request fails at both ends") {
  Pair pair(quick());
  pair.connection.post(pair.connection.receive(5, 0, 500));
  pair.connection.post(pair.connection.receive(6, 0, 500));
  pair.connection.post(pair.connection.send(1, 0, 1000));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kRemoteInvalidRequest);
  auto received = pair.received();
  REQUIRE(received.size() == 2);
  CHECK(received[0].status == WcStatus::kLocalLengthError);
  CHECK(received[0].wr_id == 5);
  CHECK(received[1].status == WcStatus::kFlushed);
  CHECK(pair.far().resp_local_length_error.get() == 1);
  CHECK(pair.far().resp_cqe_error.get() == 1);
  CHECK(pair.far().resp_cqe_flush_error.get() == 1);
}

TEST_CASE("responder: a receive request into memory without rights is a remote operation error") {
  Pair pair(quick());
  ReceiveRequest bad = pair.connection.receive(5, 0, 500);
  bad.sges = Sge{pair.connection.near_address, 100, pair.connection.near_key ^ 0x100000};
  pair.connection.post(bad);
  pair.connection.post(pair.connection.send(1, 0, 100));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kRemoteOperationError);
  CHECK(pair.received().at(0).status == WcStatus::kLocalProtectionError);
}

TEST_CASE("responder: opcodes out of order within a message are an invalid request") {
  Pair pair(quick());
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  meddler.script = [&](const wire::Parsed& parsed, Packet& packet) {
    if (parsed.headers.bth.opcode != wire::Opcode::kRcWriteMiddle) return false;
    packet.header[28] = static_cast<uint8_t>(wire::Opcode::kRcSendMiddle);  // BTH's first octet
    return false;
  };
  pair.connection.post(pair.connection.write(1, 0, 1000));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kRemoteInvalidRequest);
  CHECK(pair.near().req_remote_invalid_request.get() == 1);
}

TEST_CASE("responder: waiting acknowledgements are coalesced") {
  QpAttributes attributes = quick();
  Pair pair(attributes);
  // A slow way back: acknowledgements queue up behind one another at the far port.
  LinkParameters slow = pair.world.link("mb_1-sw_0").parameters();
  slow.rate_bps = 10'000'000;
  set(pair.world.link("mb_1-sw_0"), slow);
  for (uint64_t i = 0; i < 100; ++i) pair.connection.post(pair.connection.write(i, i * 100, 100));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().size() == 100);
  CHECK(pair.far().port_xmit_packets.get() < 20);
}

TEST_CASE("port: queue pairs take turns of one packet, or of two microseconds of the link") {
  struct Row {
    uint64_t rate_bps;
    std::vector<size_t> turns;  // packets of three queue pairs with 40, 34 and 3
  };
  const Row rows[] = {{20'000'000'000, {17, 17, 3, 17, 17, 6}},
                      {1'000'000'000, {1, 1, 1, 1, 1, 1}}};
  for (const Row& row : rows) {
    World world;
    Connection a(world, kArea, quick()), b(world, kArea, quick()), c(world, kArea, quick());
    LinkParameters parameters = world.link("mb_0-sw_0").parameters();
    parameters.rate_bps = row.rate_bps;
    set(world.link("mb_0-sw_0"), parameters);
    std::vector<size_t> turns;
    uint32_t last = 0;
    Meddler meddler(world, world.link("mb_0-sw_0"), 1, {});
    meddler.script = [&](const wire::Parsed& parsed, Packet&) {
      uint32_t before = std::exchange(last, parsed.headers.bth.dest_qpn);
      if (before != last) turns.push_back(0);
      ++turns.back();
      return false;
    };
    a.post(a.write(1, 0, 256 * 40));
    b.post(b.write(1, 0, 256 * 34));
    c.post(c.write(1, 0, 256 * 3));
    REQUIRE(world.run_idle());
    REQUIRE(turns.size() >= 6);
    turns.resize(6);
    CHECK(turns == row.turns);
  }
}

TEST_CASE("port: a packet with an unknown queue pair, opcode or P_Key is dropped and counted") {
  Pair pair(quick());
  Meddler meddler(pair.world, pair.world.link("sw_0-mb_1"), 1, {});
  int seen = 0;
  meddler.script = [&](const wire::Parsed&, Packet& packet) {
    switch (seen++) {
      case 0:
        packet.header[20 + 8 + 7] ^= 0x40;
        break;  // destination QP
      case 1:
        packet.header[20 + 8 + 2] ^= 0x40;
        break;  // partition key
      case 2:
        packet.header[20 + 8] = 0x1f;
        break;  // opcode
      default:
        break;
    }
    return false;
  };
  auto dropped = [&] {
    PortCounters& far = pair.far();
    return far.port_rcv_errors.get() + far.rx_unknown_qp.get() + far.rx_wrong_pkey.get();
  };
  uint64_t before = dropped();
  pair.connection.post(pair.connection.write(1, 0, 100));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  CHECK(dropped() - before == 3);
}

TEST_CASE("qp: packets of another service, and unexpected answers, change nothing") {
  for (wire::Opcode opcode : {wire::Opcode::kUcWriteOnly, wire::Opcode::kUdSendOnly,
                              wire::Opcode::kCnp, wire::Opcode::kRcReadResponseMiddle,
                              wire::Opcode::kRcReadResponseOnly, wire::Opcode::kRcAtomicAck}) {
    INFO(wire::opcode_info(opcode).name);
    Pair pair(quick());
    wire::Headers headers = pair.connection.near->headers_to(
        pair.connection.near->attributes().path, pair.connection.far->number());
    headers.bth.opcode = opcode;
    headers.reth = {pair.connection.far_address, pair.connection.far_key, 0};
    wire::finish_lengths(headers, 0);
    PacketPtr packet = pair.world.fabric.pool().acquire();
    packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
    pair.world.device("mb_1").port().receive(packet.release(), 0);
    CHECK_FALSE(pair.world.outstanding.any());
    CHECK(pair.far().rx_write_requests.get() == 0);
    pair.connection.post(pair.connection.write(1, 0, 100));
    REQUIRE(pair.world.run_idle());
    CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
    CHECK(pair.far().port_xmit_packets.get() == 1);  // the write's acknowledgement, no NAK before
  }
}

TEST_CASE("memory: a payload whose region has gone is dropped and counted") {
  Pair pair(quick(0));
  pair.connection.post(pair.connection.write(1, 0, 100));
  REQUIRE(pair.world.scheduler.run_one(kSecond));  // transmitted, not arrived
  REQUIRE(pair.connection.near_device.memory().remove(pair.connection.near_key));
  REQUIRE(pair.world.run_idle());
  CHECK(pair.world.fabric.counters().stale_payloads.get() == 1);
  CHECK(pair.sent().at(0).status != WcStatus::kSuccess);
}

TEST_CASE("memory: a region covers exactly its octets") {
  MemoryRegion region;
  region.address = 1000;
  region.length = 100;
  CHECK(region.covers(1000, 100));
  CHECK(region.covers(1099, 1));
  CHECK(region.covers(1100, 0));
  CHECK_FALSE(region.covers(999, 1));
  CHECK_FALSE(region.covers(1000, 101));
  CHECK_FALSE(region.covers(1001, 100));
  CHECK_FALSE(region.covers(1101, 0));
  CHECK_FALSE(region.covers(~uint64_t{0}, 2));
  CHECK_FALSE(region.covers(1000, ~uint64_t{0}));
}

TEST_CASE("memory: a removed region's key does not become valid again soon") {
  MemoryTable table;
  auto memory = LocalMemory::create(4096);
  uint32_t first = *table.add(memory, 0, 4096, 1, kLocalWrite);
  REQUIRE(table.remove(first));
  CHECK_FALSE(table.remove(first));
  uint32_t second = *table.add(memory, 0, 4096, 1, kLocalWrite);
  CHECK(MemoryTable::index_of(first) == MemoryTable::index_of(second));
  CHECK(first != second);
  CHECK(table.find(first) == nullptr);
  CHECK(table.add(memory, 0, 1, 1, kRemoteWrite).error().code == EINVAL);
}

TEST_CASE("memory: slow memory that fails is an error at the end that owns it") {
  for (bool far_fails : {false, true}) {
    World world;
    auto near = std::make_shared<SlowMemory>(world, kArea, 1);
    auto far = std::make_shared<SlowMemory>(world, kArea, 2);
    (far_fails ? far : near)->failing = true;
    Connection connection(world, kArea, quick(), near, far);
    connection.post(connection.write(1, 0, 1000));
    REQUIRE(world.run_idle());
    auto sent = Connection::poll(connection.near_cq);
    CHECK(sent.at(0).status ==
          (far_fails ? WcStatus::kRemoteAccessError : WcStatus::kLocalProtectionError));
    CHECK((far_fails ? far : near)->asked > 0);
  }
}

TEST_CASE("device: a queue pair may be destroyed while memory works for it") {
  World world;
  auto near = std::make_shared<SlowMemory>(world, kArea, 1);
  auto far = std::make_shared<SlowMemory>(world, kArea, 2, kMillisecond);
  {
    Connection connection(world, kArea, quick(), near, far);
    for (uint64_t i = 0; i < 10; ++i) connection.post(connection.write(i, i * 2000, 2000));
    world.scheduler.run_until(40 * kMicrosecond);
    REQUIRE(far->asked > 0);
  }
  world.scheduler.run_until(kSecond);
  CHECK_FALSE(world.outstanding.any());
}

TEST_CASE("completion queue: an overflow puts the queue pair in error") {
  World world;
  Connection connection(world, kArea, quick());
  connection.near_cq = CompletionQueue(2);
  for (uint64_t i = 0; i < 5; ++i) connection.post(connection.write(i, 0, 10));
  REQUIRE(world.run_idle());
  CHECK(connection.near->state() == QpState::kError);
  CHECK(Connection::poll(connection.near_cq).size() == 2);
}

TEST_CASE("IPv6: a connection between link-local addresses works") {
  World world;
  FlowSpec spec = *parse_flow("f write mb_0 mb_1 count=50 gid=0 size=10000");
  auto stats = std::make_shared<FlowStats>();
  bool done = false;
  Flow flow(world.fabric, spec, {}, stats, nullptr,
            [&](Result<void> result) { done = bool(result); });
  REQUIRE(flow.start());
  REQUIRE(world.run_idle());
  CHECK(done);
  CHECK(stats->mismatched.get() == 0);
  CHECK(stats->messages.get() == 50);
}
