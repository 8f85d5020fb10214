// Links between two packet cores.
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/loop/engine.h"
#include "rdma/fabric/link.h"
#include "rdma/network/core_exchange.h"
#include "test/each_loop.h"
#include "test/run_command.h"

using namespace rocefs;

namespace {

constexpr uint64_t kMost = CoreCrossings::kMost;

// Transmits numbered packets, as many as it is told to.
struct Source final : LinkSource {
  PacketPool& pool;
  Link* link = nullptr;
  std::atomic<uint64_t> wanted{0}, sent{0};
  uint16_t headers = 48;
  bool ethernet = false;
  explicit Source(PacketPool& p) : pool(p) {}
  Packet* pull(TimeNs) override {
    if (sent.load() == wanted.load()) return nullptr;
    PacketPtr packet = pool.acquire();
    packet->header_len = headers;
    packet->ethernet = ethernet;
    packet->header[0] = 0x45;
    packet->payload.kind = Payload::Kind::kFrame;
    packet->payload.length = 1000;
    pool.attach_frame(*packet);
    packet->sender.position = static_cast<uint32_t>(sent.fetch_add(1));
    return packet.release();
  }
};

struct Sink final : LinkSink {
  Scheduler& scheduler;
  std::vector<TimeNs> times;
  std::atomic<uint64_t> count{0};
  bool in_order = true;
  explicit Sink(Scheduler& s) : scheduler(s) {}
  void receive(Packet* arriving, TimeNs now) override {
    PacketPtr packet(arriving);
    in_order &= packet->sender.position == count.load();
    times.push_back(now);
    count.fetch_add(1);
  }
};

LinkParameters slow() {
  LinkParameters parameters;
  parameters.rate_bps = 10'000'000'000;
  parameters.delay_ns = 1000;
  return parameters;
}

// A cable between two cores. Until the engine is started, the test is the thread of both.
struct Cable {
  PollLoop loop;
  std::unique_ptr<Engine> engine = two_cores(loop);
  PacketPool near_pool{engine->core(0).outstanding()}, far_pool{engine->core(1).outstanding()};
  Counter stale;
  CoreExchange near{engine->core(0), near_pool, stale}, far{engine->core(1), far_pool, stale};
  Scheduler& here = engine->core(0).scheduler();
  Scheduler& there = engine->core(1).scheduler();
  TraceHash near_trace, far_trace;
  LinkSides forth{here, near_trace, there, far_trace, &near.way_to(far)};
  LinkSides back{there, far_trace, here, near_trace, &far.way_to(near)};
  Source source{near_pool}, idle{far_pool};
  Sink sink{there}, idle_sink{here};
  Link out{"a-b", 0, slow(), 1, forth}, in{"b-a", 1, slow(), 1, back};

  static std::unique_ptr<Engine> two_cores(PollLoop& loop) {
    Engine::Options options;
    options.cores = 2;
    auto created = Engine::create(options, loop);
    REQUIRE(created);
    return std::move(*created);
  }
  Cable() {
    out.set_reverse(in);
    out.connect(source, sink);
    in.connect(idle, idle_sink);
  }
  ~Cable() {
    engine->stop();
    PacketPool::use_here(nullptr);
  }
  void send(uint64_t packets) {
    source.wanted.fetch_add(packets);
    out.kick();
  }
  void run_near(TimeNs until) {
    near.enter();
    near.take();
    here.run_until(until);
  }
  void run_far(TimeNs until) {
    far.enter();
    while (far.take()) {
    }
    there.run_until(until);
  }
  void command(const std::function<void()>& work) { test::run_command(*engine, work); }
};

TimeNs octets_ns(const Link& link) {
  return static_cast<TimeNs>(link.serialization_ns(48 + 1000 + wire::kIcrcLen));
}

}  // namespace

TEST_CASE("core exchange: packets arrive at the time that the link gives them") {
  Cable cable;
  cable.send(3);
  cable.run_near(100 * kMicrosecond);
  CHECK(cable.far.has_more());
  cable.run_far(100 * kMicrosecond);
  CHECK_FALSE(cable.far.has_more());
  const TimeNs each = octets_ns(cable.out);
  REQUIRE(cable.sink.times.size() == 3);
  CHECK(cable.sink.times[0] == each + 1000);
  CHECK(cable.sink.times[2] >= 3 * each + 1000);
  CHECK(cable.sink.times[2] <= 3 * each + 1003);
}

TEST_CASE("core exchange: packets that are learned of late keep the distances of the link") {
  Cable cable;
  cable.send(3);
  cable.run_near(100 * kMicrosecond);
  cable.there.pass(50 * kMicrosecond);
  cable.run_far(100 * kMicrosecond);
  REQUIRE(cable.sink.times.size() == 3);
  CHECK(cable.sink.times[0] == 50 * kMicrosecond);
  CHECK(cable.sink.times[1] == cable.sink.times[0] + octets_ns(cable.out));
  CHECK(cable.sink.times[2] == cable.sink.times[1] + octets_ns(cable.out));
}

TEST_CASE("core exchange: a core that takes nothing stops the link, whose source keeps the rest") {
  Cable cable;
  cable.send(5000);
  cable.run_near(kSecond);
  CHECK(cable.source.sent.load() == kMost);
  cable.out.kick();
  cable.run_near(2 * kSecond);
  CHECK(cable.source.sent.load() == kMost);
  CHECK(cable.engine->core(0).outstanding().packets == static_cast<int64_t>(kMost));
  for (int i = 0; i < 100 && cable.sink.count.load() < 5000; ++i) {
    cable.run_far(cable.there.now() + kSecond);
    CHECK(cable.near.has_more() == (cable.source.sent.load() < 5000));
    cable.run_near(cable.here.now() + kSecond);
  }
  CHECK(cable.sink.count.load() == 5000);
  CHECK(cable.sink.in_order);
}

TEST_CASE("core exchange: PAUSE crosses a full cable, and stops the other direction") {
  Cable cable;
  cable.send(5000);
  cable.run_near(kSecond);
  cable.out.send_pause(3, true);
  cable.run_far(2 * kSecond);
  CHECK(cable.in.paused() == 1 << 3);
  cable.near.enter();
  cable.out.send_pause(3, false);
  cable.run_far(3 * kSecond);
  CHECK(cable.in.paused() == 0);
}

TEST_CASE("core exchange: a frame of a host crosses, with headers or without") {
  Cable cable;
  cable.source.headers = 0;
  cable.source.ethernet = true;
  cable.send(3);
  cable.run_near(kSecond);
  cable.run_far(2 * kSecond);
  CHECK(cable.sink.count.load() == 3);
}

TEST_CASE("core exchange: a cable that goes down loses what crosses; another one's goes on") {
  Cable cable;
  cable.send(10);
  cable.run_near(kSecond);
  cable.out.send_pause(3, true);
  cable.near.leave();
  LinkParameters down = slow();
  down.up = false;
  cable.out.apply(Link::values_of(down));
  CHECK(cable.out.losses().lost.get() == 10);
  cable.run_far(2 * kSecond);
  CHECK(cable.sink.count.load() == 0);
  CHECK(cable.in.paused() == 0);
  cable.near.leave();
  cable.out.apply(Link::values_of(slow()));
  CHECK(cable.engine->core(0).outstanding().packets == 0);
}

TEST_CASE("core exchange: after a reset a link that had stopped transmits again") {
  Cable cable;
  cable.send(2 * kMost);
  cable.run_near(kSecond);
  cable.near.leave();
  cable.near.reset();
  cable.far.reset();
  cable.out.reset();
  CHECK_FALSE(cable.far.has_more());
  cable.send(0);
  cable.run_near(2 * kSecond);
  CHECK(cable.source.sent.load() == 2 * kMost);
  cable.run_far(3 * kSecond);
  CHECK(cable.sink.count.load() == kMost);
}

TEST_CASE("core exchange: what a core has not taken yet is late, as an event is") {
  Cable cable;
  CHECK(cable.far.first_left() == kNever);
  cable.send(100);
  cable.run_near(kSecond);
  cable.far.enter();
  cable.far.take();
  CHECK(cable.far.first_left() >= 33 * octets_ns(cable.out) + 1000);
  CHECK(cable.far.first_left() <= 34 * octets_ns(cable.out) + 1000);
  while (cable.far.take()) {
  }
  CHECK(cable.far.first_left() == kNever);
  CHECK_FALSE(cable.far.has_more());
}

TEST_CASE("core exchange: two threads: a sleeping core is woken, and all arrives in order") {
  ON_EACH_LOOP();
  Cable cable;
  cable.engine->start();
  for (uint64_t count : {1, 1, 100, 1, 20'000}) {
    const uint64_t before = cable.sink.count.load();
    cable.command([&] { cable.send(count); });
    while (cable.sink.count.load() < before + count) std::this_thread::yield();
  }
  cable.engine->stop();
  CHECK(cable.sink.in_order);
  CHECK(cable.stale.get() == 0);
}

TEST_CASE(
    "core exchange: a core without a CPU stops links to it and engine time, and loses nothing") {
  Cable cable;
  struct Block {
    std::promise<void> begun, go_on;
    Event event = event_of<&Block::run>(this);
    void run(TimeNs) {
      begun.set_value();
      go_on.get_future().wait();
    }
  } block;
  struct Tick {
    Scheduler& scheduler;
    Event event = event_of<&Tick::run>(this);
    void run(TimeNs) { scheduler.after(event, 10 * kMicrosecond); }
  } tick{cable.here};
  cable.there.after(block.event, 0);
  cable.here.after(tick.event, 0);
  cable.engine->start();
  block.begun.get_future().wait();
  Task send = [&] { cable.send(20'000); };
  cable.engine->core(0).run(std::move(send));
  while (cable.engine->slips() == 0) std::this_thread::yield();
  CHECK(cable.source.sent.load() <= kMost);
  block.go_on.set_value();
  while (cable.sink.count.load() < 20'000) std::this_thread::yield();
  cable.engine->stop();
  CHECK(cable.sink.in_order);
}
