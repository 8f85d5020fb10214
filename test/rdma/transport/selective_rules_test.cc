// Invariants of selective retransmission, under faults of packets and of the agreement bit, and
// under changes of its knobs.
#include <map>
#include <set>

#include "test/rdma/transport/pair.h"
#include "test/rdma/transport/random_run.h"
#include "test/rdma/transport/seeds.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Totals = std::map<std::string, uint64_t>;

template <class Options>
Totals run_seeds(uint64_t runs, const char* name, Options options_of) {
  Totals totals;
  for_seeds(runs, name, [&](uint64_t seed) {
    Rng rng(seed, "options");
    RandomRun run(seed, options_of(rng));
    run.run();
    run.add_to(totals);
  });
  return totals;
}

constexpr uint64_t kRuns = seeds(1000);

}  // namespace

TEST_CASE("selective: bytes arrive once, whole and in order with agreement of both ends") {
  auto totals = run_seeds(kRuns, "selective: bytes arrive", [](Rng& rng) {
    RunOptions options;
    options.near_sr = options.far_sr = true;
    options.ops = rng.chance(0.5);
    return options;
  });
  if (replays()) return;
  for (const char* happened : {"sr_retrans", "sr_ooo_placed", "out_of_sequence", "packet_seq_err",
                               "local_ack_timeout_err", "rx_icrc_encapsulated"}) {
    INFO(happened);
    CHECK(totals[std::string("hw_counters/") + happened] > kRuns / 4);
  }
}

TEST_CASE("selective: a far end that does not agree gets go-back-N, and the data stays right") {
  auto totals = run_seeds(kRuns, "selective: a far end that", [](Rng& rng) {
    RunOptions options;
    options.near_sr = rng.chance(0.5);
    options.far_sr = !options.near_sr;
    options.ops = rng.chance(0.3);
    return options;
  });
  if (replays()) return;
  CHECK(totals["hw_counters/sr_ooo_placed"] == 0);
  CHECK(totals["hw_counters/out_of_sequence"] > kRuns);
}

TEST_CASE("selective: the bit of agreement may flip on the wire, and the data stays right") {
  auto totals = run_seeds(kRuns, "selective: the bit", [](Rng& rng) {
    RunOptions options;
    options.near_sr = rng.chance(0.7);
    options.far_sr = rng.chance(0.7);
    options.ops = rng.chance(0.3);
    constexpr double kFlips[] = {0.01, 0.1, 0.3, 0.5};
    options.flip = kFlips[rng.below(4)];
    return options;
  });
  if (replays()) return;
  CHECK(totals["hw_counters/sr_retrans"] > kRuns);
}

TEST_CASE("selective: knobs may change at any moment without loss or harm") {
  auto totals = run_seeds(kRuns, "selective: knobs", [](Rng& rng) {
    RunOptions options;
    options.near_sr = rng.chance(0.5);
    options.far_sr = rng.chance(0.5);
    options.toggle = 0.002 + rng.uniform() * 0.05;
    options.flip = rng.chance(0.2) ? 0.1 : 0;
    return options;
  });
  if (replays()) return;
  CHECK(totals["hw_counters/sr_retrans"] > kRuns / 4);
  CHECK(totals["hw_counters/sr_ooo_placed"] > kRuns / 4);
}

namespace {

QpAttributes wide() {
  QpAttributes attributes = quick_attributes();
  attributes.window = 512;
  attributes.timeout = 8;  // 1 ms
  return attributes;
}
void agree(Pair& pair, uint64_t window = 64) {
  set_sr(pair.link.near_device, true, window);
  set_sr(pair.link.far_device, true, window);
}
constexpr uint32_t kMtu = 256;

}  // namespace

TEST_CASE("selective: a packet that more than the reorder window has overtaken is taken for lost") {
  for (uint32_t window : {0u, 1u, 5u, 20u}) {
    for (bool one_more : {false, true}) {
      INFO("window " << window << (one_more ? ", overtaken by one more" : ""));
      if (window == 0 && !one_more) continue;
      Pair pair(wide());
      agree(pair, window);
      uint32_t until = 10 + window + one_more, overtaken_by = 0;
      bool overtaken = false;
      PacketPtr late;
      Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet& packet) {
        if (parsed.headers.bth.psn == 10 && !std::exchange(overtaken, true)) {
          late = forth.meddler.copy(packet);
          return true;
        }
        overtaken_by += parsed.headers.bth.psn > 10;
        bool arrives = late && parsed.headers.bth.psn == until + 1;
        if (arrives) forth.meddler.deliver(std::move(late));
        return false;
      });
      REQUIRE(pair.outcome(pair.link.write(1, 0, 60 * kMtu)) == WcStatus::kSuccess);
      CHECK(pair.near().packet_seq_err.get() == one_more);
      CHECK(pair.near().sr_retrans.get() == one_more);
      CHECK(pair.same(0, 0, 60 * kMtu));
    }
  }
}

TEST_CASE("selective: a packet that few overtake is lost after twice the reorder window's time") {
  for (uint32_t window : {8u, 16u, 64u}) {
    INFO("window " << window);
    Pair pair(wide());
    agree(pair, window);
    TimeNs seen = 0, asked = 0;
    Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
      if (parsed.headers.bth.psn == 11 && seen == 0) seen = pair.world.scheduler.now();
      return parsed.headers.bth.psn == 10 && asked == 0;
    });
    Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet&) {
      if (parsed.headers.bth.reserved7 & kSelectiveNak) asked = pair.world.scheduler.now();
      return false;
    });
    REQUIRE(pair.outcome(pair.link.write(1, 0, 15 * kMtu)) == WcStatus::kSuccess);
    double packet_ns = pair.world.link("sw_0-mb_1").serialization_ns(kMtu + 44);
    TimeNs longest = static_cast<TimeNs>(2 * window * packet_ns);
    CHECK(asked - seen >= longest);
    CHECK(asked - seen < longest + 5 * kMicrosecond);  // and the way back
  }
}

TEST_CASE("selective: SENDs, atomics and READs that arrive in any order are executed in order") {
  Pair pair(wide());
  agree(pair);
  // Each packet, in either direction, is overtaken by up to ten others.
  Meddler::Odds odds;
  odds.delay = 1;
  odds.longest_delay = 3 * kMicrosecond;
  Meddler forth(pair.world, pair.world.link("sw_0-mb_1"), 1, odds);
  Meddler back(pair.world, pair.world.link("sw_0-mb_0"), 2, odds);
  // A number is passed on: each atomic adds to the value that the WRITE before it has placed, each
  // READ sees at least the result of the atomic before it.
  constexpr uint64_t kRounds = 40, kWord = 50000;
  for (uint64_t i = 0; i < kRounds; ++i) pair.put(pair.near_bytes(), 1000 + i * 8, i * 100);
  for (uint64_t i = 0; i < kRounds; ++i) {
    SendRequest write = pair.link.write(i * 4, 1000 + i * 8, 8);
    write.remote_address = pair.link.far_address + kWord;
    pair.link.post(write);
    pair.link.post(pair.link.fetch_add(i * 4 + 1, kWord, 7, 2000 + i * 8));
    SendRequest read = pair.link.read(i * 4 + 2, 3000 + i * 8, 8);
    read.remote_address = pair.link.far_address + kWord;
    pair.link.post(read);
    pair.link.post(pair.link.receive(i, 20000 + i * 700, 700));
    pair.link.post(pair.link.send(i * 4 + 3, 10000 + i, 600));
  }
  pair.run();
  auto sent = pair.sent();
  REQUIRE(sent.size() == kRounds * 4);
  for (uint64_t i = 0; i < sent.size(); ++i) {
    CHECK(sent[i].wr_id == i);
    CHECK(sent[i].status == WcStatus::kSuccess);
  }
  auto received = pair.received();
  REQUIRE(received.size() == kRounds);
  for (uint64_t i = 0; i < kRounds; ++i) {
    CHECK(received[i].wr_id == i);
    CHECK(pair.same(10000 + i, 20000 + i * 700, 600));
    CHECK(pair.word(pair.near_bytes(), 2000 + i * 8) == i * 100);
    // Later WRITEs may be seen, too: there is no fence.
    CHECK(pair.word(pair.near_bytes(), 3000 + i * 8) >= i * 100 + 7);
  }
  CHECK(pair.far().sr_ooo_placed.get() > 20);
  CHECK(pair.near().sr_ooo_placed.get() > 0);
  CHECK(pair.link.near->requester().packets_resent() == 0);
}

TEST_CASE("selective: losses around the wrap of the PSN are repaired like others") {
  QpAttributes attributes = wide();
  attributes.send_psn = attributes.receive_psn = 0xffffff - 20;
  Pair pair(attributes);
  agree(pair);
  std::map<uint32_t, int> seen;
  int again = 0;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    uint32_t psn = parsed.headers.bth.psn;
    bool lost = psn == 0xffffff || psn == 0 || psn == 7 || psn == 0xfffff0;
    again += seen[psn] > 0;
    return lost && seen[psn]++ == 0;
  });
  REQUIRE(pair.outcome(pair.link.write(1, 0, 100 * kMtu)) == WcStatus::kSuccess);
  CHECK(again == 4);
  CHECK(pair.near().sr_retrans.get() == 4);
  CHECK(pair.same(0, 0, 100 * kMtu));
}

TEST_CASE("selective: packets kept for a far end that is gone are dropped eventually") {
  Pair pair(wide());
  agree(pair);
  Watch forth(pair, "sw_0-mb_1",
              [&](const wire::Parsed& parsed, Packet&) { return parsed.headers.bth.psn == 5; });
  Watch back(pair, "sw_0-mb_0", [](const wire::Parsed&, Packet&) { return true; });
  pair.link.post(pair.link.receive(1, 0, 200 * kMtu));
  pair.link.post(pair.link.send(1, 0, 200 * kMtu));
  pair.run();  // ends, since no packets stay outstanding
  CHECK(pair.sent().at(0).status == WcStatus::kRetryExceeded);
  CHECK(pair.far().sr_ooo_placed.get() >= 194);
  CHECK(pair.received().empty());
}

TEST_CASE("selective: a NAK that is repeated without end uses up the retries") {
  Pair pair(wide());
  agree(pair);
  Watch forth(pair, "sw_0-mb_1",
              [&](const wire::Parsed& parsed, Packet&) { return parsed.headers.bth.psn == 5; });
  REQUIRE(pair.outcome(pair.link.write(1, 0, 100 * kMtu)) == WcStatus::kRetryExceeded);
  CHECK(pair.near().req_transport_retries_exceeded.get() == 1);
  CHECK(pair.near().packet_seq_err.get() >= 1);
}

TEST_CASE("selective: enabling and disabling take effect within a round trip") {
  for (bool enable : {false, true}) {
    INFO((enable ? "enabled" : "disabled") << " under traffic");
    Pair pair(wide());
    set_sr(pair.link.near_device, !enable);
    set_sr(pair.link.far_device, !enable);
    std::set<uint32_t> lost;
    uint32_t lose = 0;
    Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
      return parsed.headers.bth.psn == lose && lose != 0 && lost.insert(lose).second;
    });
    for (uint64_t i = 0; i < 40; ++i) pair.link.post(pair.link.write(i, 0, 20 * kMtu));
    while (pair.far().port_rcv_packets.get() < 100) REQUIRE(pair.world.scheduler.run_one(kSecond));
    set_sr(pair.link.near_device, enable);
    set_sr(pair.link.far_device, enable);
    // A round trip is below 10 us.
    pair.world.scheduler.run_until(pair.world.scheduler.now() + 10 * kMicrosecond);
    lose = static_cast<uint32_t>(pair.far().port_rcv_packets.get()) + 10;
    pair.run();
    CHECK(lost.size() == 1);
    CHECK(pair.sent().size() == 40);
    CHECK(pair.near().sr_retrans.get() == enable);
    uint64_t resent = pair.link.near->requester().packets_resent();
    CHECK((enable ? resent == 1 : resent > 1));
  }
}

TEST_CASE(
    "selective: a selective NAK that is taken for a standard one completes nothing too early") {
  Pair pair(wide());
  agree(pair);
  std::set<uint32_t> lost;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    uint32_t psn = parsed.headers.bth.psn;
    return (psn == 20 || psn == 60) && lost.insert(psn).second;
  });
  // The first hole's NAK is lost; the second's comes without the bit that marks it.
  int plain = 0;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet& packet) {
    if (!(parsed.headers.bth.reserved7 & kSelectiveNak)) return false;
    if (parsed.headers.aeth.msn == 20) return true;
    uint8_t* bth = packet.header.data() + wire::kIpv4Len + wire::kUdpLen;
    bth[4] = 0;
    bth[8] &= 0x80;
    ++plain;
    return false;
  });
  pair.link.near_cq.set_listener([&] { CHECK(pair.same(0, 0, 100 * kMtu)); });
  REQUIRE(pair.outcome(pair.link.write(1, 0, 100 * kMtu)) == WcStatus::kSuccess);
  CHECK(plain > 0);
}

TEST_CASE("selective: a kept packet whose region is removed is dropped and counted") {
  Pair pair(wide());
  agree(pair);
  PacketPtr late;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet& packet) {
    if (parsed.headers.bth.psn != 5 || late) return false;
    late = forth.meddler.copy(packet);
    REQUIRE(materialize(*late));
    return true;
  });
  pair.link.post(pair.link.receive(1, 0, 40 * kMtu));
  pair.link.post(pair.link.send(1, 0, 40 * kMtu));
  while (pair.far().sr_ooo_placed.get() < 20) REQUIRE(pair.world.scheduler.run_one(kSecond));
  REQUIRE(pair.link.near_device.memory().remove(pair.link.near_key));
  forth.meddler.deliver(std::move(late));
  CHECK(pair.world.fabric.counters().stale_payloads.get() == 1);
  pair.run();
  CHECK(pair.sent().at(0).status != WcStatus::kSuccess);
  CHECK(pair.received().empty());
}

TEST_CASE("selective: a response that cannot be placed ends its READ after the earlier ones") {
  Pair pair(wide());
  agree(pair);
  Connection& link = pair.link;
  uint32_t other = *link.near_device.memory().add(link.near_memory, 0x7000000, kPairArea,
                                                  Connection::kPd, kLocalWrite);
  bool lost = false;
  Watch back(pair, "sw_0-mb_0", [&](const wire::Parsed&, Packet&) {
    if (lost) return false;
    REQUIRE(link.near_device.memory().remove(other));
    return lost = true;
  });
  SendRequest second = link.read(2, 0, 4 * kMtu);
  second.sges = Sge{0x7000000, 4 * kMtu, other};
  link.post(link.read(1, 0, 4 * kMtu));
  link.post(second);
  link.post(link.read(3, 0, 4 * kMtu));
  pair.run();
  auto ended = pair.sent();
  REQUIRE(ended.size() == 3);
  CHECK(ended[0].status == WcStatus::kSuccess);
  CHECK(ended[1].status == WcStatus::kLocalProtectionError);
  CHECK(ended[2].status == WcStatus::kFlushed);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

TEST_CASE("selective: after a reset missing packets are requested at once, at lower PSNs too") {
  QpAttributes attributes = wide();
  attributes.send_psn = attributes.receive_psn = 5000;
  Pair pair(attributes);
  agree(pair);
  uint32_t lost = 5010;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
    return parsed.headers.bth.psn == lost && std::exchange(lost, 0) != 0;
  });
  REQUIRE(pair.outcome(pair.link.write(1, 0, 100 * kMtu)) == WcStatus::kSuccess);
  CHECK(pair.near().sr_retrans.get() == 1);
  Connection& link = pair.link;
  REQUIRE(link.near->modify(QpState::kReset));
  REQUIRE(link.far->modify(QpState::kReset));
  attributes.send_psn = attributes.receive_psn = 1;
  attributes.access = kRemoteAny;
  Connection::raise(*link.near, *link.far, link.near_device, link.far_device, attributes);
  Connection::raise(*link.far, *link.near, link.far_device, link.near_device, attributes);
  lost = 20;
  REQUIRE(pair.outcome(pair.link.write(2, 0, 100 * kMtu)) == WcStatus::kSuccess);
  CHECK(pair.near().sr_retrans.get() == 2);
  CHECK(pair.near().local_ack_timeout_err.get() == 0);
}

TEST_CASE("selective: with slow memory at both ends each loss costs one retransmission") {
  World world;
  constexpr uint32_t kLength = 100 * kMtu;
  auto near = std::make_shared<SlowMemory>(world, kLength, 1);
  auto far = std::make_shared<SlowMemory>(world, kLength, 2);
  Connection link(world, kLength, wide(), near, far);
  for (const char* name : {"mb_0", "mb_1"}) set_sr(world.device(name), true);
  fill(near->bytes, 5);
  std::set<uint32_t> lost;
  Meddler forth(world, world.link("sw_0-mb_1"), 1, {});
  forth.script = [&](const wire::Parsed& parsed, Packet&) {
    uint32_t psn = parsed.headers.bth.psn;
    return (psn == 0 || psn == 30 || psn == 99) && lost.insert(psn).second;
  };
  link.post(link.write(1, 0, kLength));
  REQUIRE(world.run_idle());
  CHECK(Connection::poll(link.near_cq).at(0).status == WcStatus::kSuccess);
  CHECK(near->bytes == far->bytes);
  // The tail is found by a time-out, after which the oldest unanswered packet is sent, too.
  CHECK(world.counters("mb_0").sr_retrans.get() == 4);
  CHECK(link.near->requester().packets_resent() == 4);
}
