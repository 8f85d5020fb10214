// Acknowledgement requests: when a requester asks for an acknowledgement, and that it waits for
// none that it has not asked for: no time-out is needed without losses.
#include <catch2/catch.hpp>

#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Memory whose reads from `torn` on fail.
class TornMemory final : public SlowMemory {
 public:
  TornMemory(World& world, size_t size, uint64_t torn) : SlowMemory(world, size, 1), torn_(torn) {}
  Outcome read(uint64_t offset, std::span<uint8_t> into, MemoryListener& listener,
               uint64_t ticket) override {
    failing = offset >= torn_;
    return SlowMemory::read(offset, into, listener, ticket);
  }

 private:
  const uint64_t torn_;
};

void run_until_sent(Pair& pair, uint64_t packets) {
  while (pair.link.near->requester().packets_sent() < packets) {
    REQUIRE(pair.world.scheduler.run_one(kSecond));
  }
}

}  // namespace

TEST_CASE("ack request: forty consecutive requests of one packet get two acknowledgements") {
  Pair pair;
  int acknowledgements = 0;
  Watch watch(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet&) {
    acknowledgements += parsed.headers.bth.opcode == wire::Opcode::kRcAck;
    return false;
  });
  for (uint64_t i = 0; i < 40; ++i) pair.link.post(pair.link.write(i, i * 100, 100));
  pair.run();
  CHECK(pair.sent().size() == 40);
  CHECK(acknowledgements == 2);  // for 32 packets, and for 8 with none behind them
  CHECK(pair.same(0, 0, 4000));
}

TEST_CASE("ack request: a request before one whose memory has gone completes without a time-out") {
  Pair pair;
  MemoryTable& table = pair.link.near_device.memory();
  auto memory = LocalMemory::create(4096);
  constexpr uint64_t kOther = 0x500000;
  uint32_t key = *table.add(memory, kOther, 4096, Connection::kPd, kLocalWrite);
  SendRequest second = pair.link.write(2, 1000, 2000);
  second.sges = Sge{kOther, 2000, key};
  uint64_t packets = GENERATE(1, 3);  // before the second request, and in the middle of it
  pair.link.post(pair.link.write(1, 0, 100));
  pair.link.post(second);
  run_until_sent(pair, packets);
  REQUIRE(table.remove(key));
  pair.run();
  auto sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kLocalProtectionError);
  CHECK(pair.link.near->requester().timeouts() == 0);
  CHECK(pair.same(0, 0, 100));
}

TEST_CASE("ack request: a request before one outside of its memory is sent once") {
  Pair pair;
  SendRequest second = pair.link.write(2, 0, 100);
  Sge part = second.sges.entries()[0];
  second.sges = Sge{part.address + kPairArea, part.length, part.lkey};
  pair.link.post(pair.link.write(1, 0, 100));
  pair.link.post(second);
  pair.run();
  auto sent = pair.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kLocalProtectionError);
  CHECK(pair.link.near->requester().packets_resent() == 0);
}

TEST_CASE("ack request: memory that fails within a message ends it, without retransmission") {
  World world;
  auto memory = std::make_shared<TornMemory>(world, kPairArea, 5000);
  Connection link(world, kPairArea, quick_attributes(), memory);
  link.post(link.write(1, 0, 1000));
  link.post(link.write(2, 2000, 8000));
  REQUIRE(world.run_idle());
  auto sent = Connection::poll(link.near_cq);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(sent[1].status == WcStatus::kLocalProtectionError);
  CHECK(link.near->requester().packets_resent() == 0);
}

TEST_CASE("ack request: a draining send queue gets the acknowledgements of what it has sent") {
  Pair pair;
  for (uint64_t i = 1; i <= 2; ++i) pair.link.post(pair.link.write(i, i * 1000, 100));
  run_until_sent(pair, 1);
  REQUIRE(pair.link.near->modify(QpState::kSqd));
  pair.world.scheduler.run_until(100 * kMicrosecond);  // no time-out comes before 131
  auto sent = pair.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].wr_id == 1);
  CHECK(pair.link.near->requester().timeouts() == 0);
  REQUIRE(pair.link.near->modify(QpState::kRts));
  pair.run();
  CHECK(pair.sent().at(0).wr_id == 2);
}

TEST_CASE("ack request: on a slow link acknowledgements arrive before the time-out") {
  QpAttributes attributes;
  attributes.path_mtu = 4096;
  attributes.timeout = 14;  // 67 ms
  attributes.retry_count = 0;
  Pair pair(attributes);
  Link& link = pair.world.link("mb_0-sw_0");
  LinkParameters slow = link.parameters();
  slow.rate_bps = GENERATE(2'000'000, 5'000'000);  // a packet takes 17 ms or 7
  set(link, slow);
  for (uint64_t i = 0; i < 15; ++i) pair.link.post(pair.link.write(i, i * 4096, 4096));
  pair.run();
  auto sent = pair.sent();
  REQUIRE(sent.size() == 15);
  for (const Completion& one : sent) CHECK(one.status == WcStatus::kSuccess);
  CHECK(pair.link.near->requester().timeouts() == 0);
}
