// NPCC's table, driven by a switch with scripted queues.
#include "rdma/cc/npcc.h"

#include <catch2/catch.hpp>
#include <map>

#include "rdma/wire/packet.h"
#include "test/rdma/world.h"

namespace rocefs::test {
namespace {

constexpr uint64_t kDeep = 100 * 1024;  // deep_threshold
constexpr TimeNs kInterval = 10 * kMicrosecond, kProcessing = 20 * kMicrosecond;

struct Bench final : NpccHost {
  World world;
  uint64_t length = 0;
  bool any_watched = false;
  std::map<uint32_t, uint32_t> senders;  // by the receiver's queue pair
  mutable int look_ups = 0;
  std::map<uint32_t, int> sent;  // CNPs, by the queue pair that they are for
  std::vector<TimeNs> times;
  Npcc npcc{*this, world.scheduler, world.fabric.pool()};

  Bench() {
    npcc.add_port();
    enable(true);
  }
  void enable(bool port, size_t off = kPriorities) {
    std::vector<KnobValue> values = initial_values(kNpccPortKnobs);
    values[0] = uint64_t{port};
    if (off < kPriorities) values[1 + off] = uint64_t{0};
    npcc.port(0).apply(values);
  }
  void set(size_t knob, uint64_t value) {
    std::vector<KnobValue> values = initial_values(kNpccKnobs);
    values[knob] = value;
    npcc.apply(values);
  }

  uint64_t queue_length(size_t, size_t) const override { return length; }
  std::optional<uint32_t> sender_of(const NpccFlowKey& flow,
                                    std::optional<uint32_t>) const override {
    ++look_ups;
    auto it = senders.find(flow.dest_qpn);
    return it == senders.end() ? std::nullopt : std::optional(it->second);
  }
  void send(PacketPtr&& packet, TimeNs now) override {
    wire::Parsed parsed;
    REQUIRE(wire::parse_headers(packet->header_bytes(), 0, parsed) == wire::ParseError::kNone);
    CHECK(parsed.headers.bth.opcode == wire::Opcode::kCnp);
    CHECK(parsed.headers.v4.src == std::array<uint8_t, 4>{10, 77, 0, 2});
    CHECK(parsed.headers.v4.dst == std::array<uint8_t, 4>{10, 77, 0, 1});
    CHECK(parsed.headers.v4.tos == 48 << 2);
    ++sent[parsed.headers.bth.dest_qpn];
    times.push_back(now);
  }

  void watching(bool any) override { any_watched = any; }

  // A data packet of the flow to `qpn`, which the switch has queued.
  void queue(uint32_t qpn, size_t priority = 0) {
    CnpAddress address{mapped_ipv4({10, 77, 0, 1}), mapped_ipv4({10, 77, 0, 2}), qpn, 0xc123,
                       static_cast<uint8_t>(priority << 5)};
    PacketPtr packet = make_cnp(world.fabric.pool(), address);
    packet->header[28] = static_cast<uint8_t>(wire::Opcode::kRcSendMiddle);
    packet->header_len -= 16;
    packet->payload.length = 1024;
    if (npcc.watches(0, priority)) {
      npcc.packet_queued(*packet, 1, 0, priority, world.scheduler.now());
    }
    packet->payload.length = 0;
  }
  // Passes an interval with packets of all flows that have a sender and a queue of `end` octets at
  // its end; returns the number of CNPs.
  int interval(uint64_t end) {
    int before = total();
    for (auto [qpn, sender] : senders) queue(qpn);
    length = end;
    world.scheduler.run_until(world.scheduler.now() + kInterval);
    return total() - before;
  }
  int total() {
    int all = 0;
    for (auto [qpn, count] : sent) all += count;
    return all;
  }
};

}  // namespace

// Huawei's text (shallow and deep, rising and falling) with our numbers: 1 and 4, 0 and 1.
TEST_CASE("npcc: a queue's depth and trend decide how many CNPs its flows get") {
  struct Row {
    const char* says;
    uint64_t before, after;
    int cnps;
  };
  const Row rows[] = {
      {"shallow and rising: a few", 10 * 1024, 20 * 1024, 1},
      {"shallow and falling: none", 20 * 1024, 10 * 1024, 0},
      {"shallow and steady: none", 20 * 1024, 20 * 1024, 0},
      {"deep and rising: many", kDeep, kDeep + 4096, 4},
      {"deep and falling: a few", kDeep + 8192, kDeep + 4096, 1},
      {"deep and steady: a few", kDeep, kDeep, 1},
      {"rising from shallow to deep: many", kDeep - 1, kDeep, 4},
      {"falling from deep to shallow: none", kDeep, kDeep - 1, 0},
      {"gone: none", kDeep, 0, 0},
  };
  for (const Row& row : rows) {
    INFO(row.says);
    Bench bench;
    bench.set(knob_index(kNpccKnobs, "processing_delay"), 0);
    bench.senders[33] = 17;
    // Long enough to be no microburst, with a length that stays.
    for (int i = 0; i < 4; ++i) bench.interval(row.before);
    CHECK(bench.interval(row.after) == row.cnps);
  }
}

TEST_CASE("npcc: a queue that lasts no longer than a microburst gets no CNP unless it is deep") {
  Bench bench;
  bench.set(knob_index(kNpccKnobs, "processing_delay"), 0);
  bench.senders[33] = 17;
  CHECK(bench.interval(20 * 1024) == 0);
  CHECK(bench.interval(0) == 0);
  CHECK(bench.npcc.counters().microbursts.get() == 0);  // 20 us old when it was found gone
  CHECK(bench.interval(0) == 0);                        // and this one 10 us
  CHECK(bench.npcc.counters().microbursts.get() == 1);
  CHECK(bench.interval(kDeep) == 4);  // deep at once
  CHECK(bench.interval(0) == 0);
  CHECK(bench.npcc.counters().microbursts.get() == 1);
}

TEST_CASE("npcc: only watched queues of watched ports are examined") {
  Bench bench;
  bench.senders[33] = 17;
  bench.enable(false);
  CHECK_FALSE(bench.npcc.watches(0, 0));
  CHECK_FALSE(bench.any_watched);
  bench.enable(true, 3);
  CHECK(bench.any_watched);
  CHECK(bench.npcc.watches(0, 0));
  CHECK_FALSE(bench.npcc.watches(0, 3));
  for (int i = 0; i < 5; ++i) {
    bench.queue(33, 3);
    bench.length = 2 * kDeep;
    bench.world.scheduler.run_until(bench.world.scheduler.now() + kInterval);
  }
  CHECK(bench.total() == 0);
}

TEST_CASE("npcc: CNPs are shared among flows in proportion to their octets") {
  Bench bench;
  bench.senders = {{33, 17}, {34, 18}, {35, 19}};
  for (int i = 0; i < 100; ++i) {
    for (int more = 0; more < 2; ++more) bench.queue(34);  // 3 of 5 packets
    bench.interval(kDeep + static_cast<uint64_t>(i) * 4096);
  }
  bench.world.scheduler.run_until(bench.world.scheduler.now() + kMillisecond);
  // 100 intervals, deep and rising: 4 each. Whole CNPs are owed late by less than one.
  CHECK(bench.sent[18] == Approx(240).margin(1));
  CHECK(bench.sent[17] == Approx(80).margin(1));
  CHECK(bench.sent[19] == Approx(80).margin(1));
}

TEST_CASE("npcc: CNPs leave a processing delay after the end of their interval") {
  Bench bench;
  bench.senders[33] = 17;
  bench.interval(kDeep);  // ends at 10 us
  bench.world.scheduler.run_until(kMillisecond);
  REQUIRE(bench.times.size() >= 4);
  CHECK(bench.times[0] == kInterval + kProcessing);
}

TEST_CASE(
    "npcc: a shorter interval and delay hold at once, and a queue that is off sends nothing") {
  const size_t interval = knob_index(kNpccKnobs, "interval");
  const size_t delay = knob_index(kNpccKnobs, "processing_delay");
  Bench bench;
  bench.senders[33] = 17;
  auto congest = [&] {
    bench.queue(33);
    bench.length = kDeep;
  };
  auto run = [&](TimeNs time) {
    const int before = bench.total();
    bench.world.scheduler.run_until(bench.world.scheduler.now() + time);
    return bench.total() - before;
  };
  SECTION("interval") {
    bench.set(interval, static_cast<uint64_t>(kSecond));
    congest();
    CHECK(run(kMillisecond) == 0);
    bench.set(interval, static_cast<uint64_t>(kInterval));
    CHECK(run(kInterval + kProcessing) > 0);
  }
  SECTION("processing delay") {
    bench.set(delay, static_cast<uint64_t>(kSecond));
    congest();
    CHECK(run(kMillisecond) == 0);
    bench.set(delay, 0);
    CHECK(run(1) > 0);
  }
  SECTION("off") {
    bench.set(delay, static_cast<uint64_t>(kMillisecond));
    congest();
    CHECK(run(kMillisecond / 2) == 0);
    bench.enable(false);
    CHECK(run(2 * kMillisecond) == 0);
  }
}

TEST_CASE("npcc: a flow with an unknown sender gets no CNP and is counted") {
  Bench bench;
  bench.queue(40);
  bench.length = kDeep;
  bench.world.scheduler.run_until(kInterval);
  bench.length = 0;
  bench.world.scheduler.run_until(kMillisecond);
  CHECK(bench.total() == 0);
  CHECK(bench.npcc.counters().unresolved.get() == 4);
  CHECK(bench.npcc.flows_text().find("10.77.0.1 10.77.0.2 40 2 1 0 -") != std::string::npos);
}

TEST_CASE("npcc: an unknown sender is looked for again once in a millisecond of its packets") {
  Bench bench;
  for (int i = 0; i < 250; ++i) {  // 2.5 ms
    bench.queue(40);
    bench.length = kDeep;
    bench.world.scheduler.run_until(bench.world.scheduler.now() + kInterval);
  }
  CHECK(bench.look_ups == 3);
  CHECK(bench.total() == 0);
  bench.senders[40] = 17;
  for (int i = 0; i < 100; ++i) bench.interval(kDeep);
  CHECK(bench.sent[17] > 0);
}

TEST_CASE("npcc: a flow that was silent for a second is forgotten, though its queue is idle") {
  Bench bench;
  bench.senders[33] = 17;
  for (int i = 0; i < 3; ++i) bench.interval(kDeep);
  bench.interval(0);
  bench.world.scheduler.run_until(kSecond - kMillisecond);
  CHECK(bench.npcc.flows_text().find(" 33 ") != std::string::npos);
  bench.world.scheduler.run_until(kSecond + kMillisecond);
  CHECK(bench.npcc.flows_text().find(" 33 ") == std::string::npos);
}

TEST_CASE("npcc: CNPs go to the queue pair that sends the flow now") {
  const TimeNs pause = GENERATE(TimeNs{0}, 2 * kSecond);
  Bench bench;
  bench.senders[33] = 17;
  for (int i = 0; i < 3; ++i) bench.interval(kDeep);
  bench.interval(0);
  bench.world.scheduler.run_until(bench.world.scheduler.now() + kMillisecond);
  const int before = bench.sent[17];
  CHECK(before > 0);
  bench.world.scheduler.run_until(bench.world.scheduler.now() + pause);
  bench.senders[33] = 18;
  for (int i = 0; i < 3; ++i) bench.interval(kDeep);
  bench.interval(0);
  bench.world.scheduler.run_until(bench.world.scheduler.now() + kMillisecond);
  CHECK(bench.sent[17] == before);
  CHECK(bench.sent[18] == before);
  bench.interval(kDeep);
  CHECK(bench.npcc.flows_text().find(" 33 2 1 0 18 ") != std::string::npos);
}

TEST_CASE("npcc: at most 65536 CNPs wait to be sent, and the excess is counted") {
  Bench bench;
  std::vector<KnobValue> values = initial_values(kNpccKnobs);
  values[knob_index(kNpccKnobs, "cnps_deep")] = uint64_t{1024};
  values[knob_index(kNpccKnobs, "processing_delay")] = uint64_t{kSecond};
  bench.npcc.apply(values);
  bench.senders[33] = 17;
  constexpr int kIntervals = 80;
  for (int i = 0; i < kIntervals; ++i) CHECK(bench.interval(kDeep) == 0);
  bench.world.scheduler.run_until(2 * kSecond);
  CHECK(bench.total() == 65536);
  CHECK(bench.npcc.counters().cnp_sent.get() == 65536);
  constexpr uint64_t kOwed = 4 + (kIntervals - 1) * 1024;  // the queue has grown once
  CHECK(bench.npcc.counters().overrun.get() == kOwed - 65536);
}

TEST_CASE("npcc: nothing is evaluated while all watched queues are empty") {
  Bench bench;
  bench.senders[33] = 17;
  bench.interval(20 * 1024);
  bench.length = 0;
  bench.world.scheduler.run_until(kMillisecond);
  CHECK(bench.world.scheduler.next() == kNever);
}

TEST_CASE(
    "npcc flows: the table holds 4096 flows, and drops the oldest and those silent for a second") {
  NpccFlows flows;
  bool fresh = false;
  NpccFlowKey key;
  for (uint32_t i = 0; i < NpccFlows::kCapacity + 1; ++i) {
    key.dest_qpn = i;
    flows.see(key, i, fresh);
    CHECK(fresh);
  }
  CHECK(flows.all().size() == NpccFlows::kCapacity);
  key.dest_qpn = 1;
  flows.see(key, 5000, fresh);
  CHECK_FALSE(fresh);
  key.dest_qpn = 0;
  flows.see(key, 5001, fresh);
  CHECK(fresh);  // the flow had been dropped, and 2 is now
  key.dest_qpn = 2;
  flows.see(key, 5002, fresh);
  CHECK(fresh);
  flows.age(kSecond + 4096);
  CHECK(flows.all().size() == 3);
  key.ingress = 1;  // another interface, another flow
  flows.see(key, kSecond, fresh);
  CHECK(fresh);
}

}  // namespace rocefs::test
