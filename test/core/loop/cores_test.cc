// An engine with several packet cores.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/loop/engine.h"
#include "test/each_loop.h"
#include "test/run_command.h"

using namespace rocefs;

namespace {

// Events that follow each other, on one core; each takes a while.
class Chain {
 public:
  explicit Chain(PacketCore& core) : core_(core) { core.scheduler().after(event_, 0); }
  uint64_t count() const { return count_.load(); }
  bool busy() const { return busy_.load(); }
  std::thread::id thread() const { return thread_.load(); }

 private:
  void run(TimeNs) {
    busy_.store(true);
    thread_.store(std::this_thread::get_id());
    for (int i = 0; i < 1000; ++i) count_.fetch_add(i == 0);
    busy_.store(false);
    core_.scheduler().after(event_, 100);
  }

  PacketCore& core_;
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> busy_{false};
  std::atomic<std::thread::id> thread_{};
  Event event_ = event_of<&Chain::run>(this);
};

class Cores {
 public:
  explicit Cores(size_t count) {
    Engine::Options options;
    options.cores = count;
    auto created = Engine::create(options, loop);
    REQUIRE(created);
    engine = std::move(*created);
  }
  ~Cores() { engine->stop(); }
  void command(const std::function<void()>& work) { test::run_command(*engine, work); }

  PollLoop loop;
  std::unique_ptr<Engine> engine;
};

struct Once {
  std::function<void()> work;
  Event event = event_of<&Once::run>(this);
  explicit Once(std::function<void()> w) : work(std::move(w)) {}
  void run(TimeNs) { work(); }
};

}  // namespace

TEST_CASE("cores: each runs its events on a thread of its own, and a command finds all at rest") {
  ON_EACH_LOOP();
  Cores cores(3);
  std::vector<std::unique_ptr<Chain>> chains;
  for (size_t i = 0; i < 3; ++i) chains.push_back(std::make_unique<Chain>(cores.engine->core(i)));
  cores.engine->start();
  uint64_t least = 0;
  for (int round = 0; round < 300; ++round) {
    cores.command([&] {
      std::vector<uint64_t> before;
      for (const auto& chain : chains) before.push_back(chain->count());
      bool at_rest = true;
      for (int look = 0; look < 200; ++look) {
        for (size_t i = 0; i < 3; ++i) {
          at_rest &= !chains[i]->busy() && chains[i]->count() == before[i];
        }
      }
      CHECK(at_rest);
      least = *std::min_element(before.begin(), before.end());
    });
  }
  while (least == 0) {
    cores.command([&] {
      least = std::min({chains[0]->count(), chains[1]->count(), chains[2]->count()});
    });
  }
  cores.engine->stop();
  CHECK(chains[0]->thread() != chains[1]->thread());
  CHECK(chains[1]->thread() != chains[2]->thread());
}

TEST_CASE("cores: a command's event wakes the core that sleeps until a later one") {
  ON_EACH_LOOP();
  Cores cores(2);
  std::promise<void> ran;
  Once late([] {}), soon([&] { ran.set_value(); });
  Scheduler& second = cores.engine->core(1).scheduler();
  second.at(late.event, 3600 * kSecond);
  cores.engine->start();
  for (int i = 0; i < 100; ++i) {
    ran = {};
    cores.command([&] { second.after(soon.event, kMicrosecond); });
    ran.get_future().wait();
  }
  cores.engine->stop();
}

TEST_CASE("cores: a task of alone() runs on the first core; in a command, at once") {
  ON_EACH_LOOP();
  Cores cores(2);
  Engine& engine = *cores.engine;
  std::thread::id first, second, task_of_event;
  std::promise<void> ran;
  bool at_once_in_event = false, returned = false;
  Once event([&] {
    second = std::this_thread::get_id();
    bool ran_now = false;
    engine.alone([&, now = &ran_now] {
      task_of_event = std::this_thread::get_id();
      if (!returned) at_once_in_event = *now = true;
      ran.set_value();
    });
    returned = true;
  });
  engine.start();
  cores.command([&] {
    first = std::this_thread::get_id();
    bool now = false;
    engine.alone([&] { now = true; });
    CHECK(now);
    engine.core(1).scheduler().after(event.event, 0);
  });
  ran.get_future().wait();
  engine.stop();
  CHECK(first != second);
  CHECK(task_of_event == first);
}

TEST_CASE("cores: events of the common scheduler are alone, too") {
  ON_EACH_LOOP();
  Cores cores(2);
  Chain chain(cores.engine->core(1));
  std::promise<bool> at_rest;
  Once common([&] {
    const uint64_t before = chain.count();
    bool rests = true;
    for (int look = 0; look < 1000; ++look) rests &= !chain.busy() && chain.count() == before;
    at_rest.set_value(rests);
  });
  cores.engine->scheduler().after(common.event, 2 * kMillisecond);
  cores.engine->start();
  CHECK(at_rest.get_future().get());
  cores.engine->stop();
}

TEST_CASE("cores: a pause stops all of them, and its end lets all go on") {
  ON_EACH_LOOP();
  Cores cores(2);
  Chain chain(cores.engine->core(1));
  cores.engine->start();
  Engine::Pause pause;
  uint64_t before = 0;
  cores.command([&] {
    pause = cores.engine->pause();
    before = chain.count();
  });
  for (int i = 0; i < 100; ++i) {
    cores.command([&] { CHECK(chain.count() == before); });
  }
  pause.reset();
  while (chain.count() == before) std::this_thread::yield();
  cores.engine->stop();
}

TEST_CASE("cores: a pause that ends while a core is about to sleep for it lets that one go on") {
  ON_EACH_LOOP();
  Cores cores(2);
  Chain chain(cores.engine->core(1));
  cores.engine->start();
  for (int round = 0; round < 3000; ++round) {
    Engine::Pause pause;
    cores.command([&] { pause = cores.engine->pause(); });
    const uint64_t before = chain.count();
    pause.reset();
    while (chain.count() == before) std::this_thread::yield();
  }
}

TEST_CASE("cores: run() takes a task to a core's own thread, which may use its input and output") {
  ON_EACH_LOOP();
  Cores cores(2);
  PacketCore& second = cores.engine->core(1);
  std::thread::id chains;
  std::promise<std::thread::id> ran;
  Once once([&] { chains = std::this_thread::get_id(); });
  second.scheduler().after(once.event, 0);
  cores.engine->start();
  second.run([&] { second.run([&] { ran.set_value(std::this_thread::get_id()); }); });
  const std::thread::id there = ran.get_future().get();
  cores.command([] {});
  cores.engine->stop();
  CHECK(there == chains);
}

TEST_CASE("cores: what another core has sent is taken before a time-out that is due") {
  Cores cores(2);
  PacketCore& second = cores.engine->core(1);
  struct Work final : CoreWork {
    std::function<void()> answer;
    void enter() override {}
    void leave() override {}
    bool take() override {
      if (answer) std::exchange(answer, nullptr)();
      return false;
    }
    bool has_more() const override { return false; }
    TimeNs first_left() const override { return kNever; }
  } work;
  std::promise<void> over;
  bool timed_out = false;
  Once timeout([&] { timed_out = true; }), end([&] { over.set_value(); });
  second.set_work(work);
  second.scheduler().at(timeout.event, 1);
  second.scheduler().at(end.event, 2);
  work.answer = [&] { second.scheduler().cancel(timeout.event); };
  cores.engine->start();
  over.get_future().wait();
  cores.engine->stop();
  CHECK_FALSE(timed_out);
}

TEST_CASE("cores: lateness of all counts, and a statistics' reset clears all") {
  Cores cores(2);
  Chain chain(cores.engine->core(1));
  cores.engine->start();
  while (chain.count() == 0) std::this_thread::yield();
  cores.engine->stop();
  Histogram before, after;
  cores.engine->add_lateness(before);
  CHECK(before.count() > 0);
  cores.engine->clear_statistics();
  cores.engine->add_lateness(after);
  CHECK(after.count() == 0);
}
