#include "core/loop/engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <future>
#include <utility>

#include "test/each_loop.h"
#include "test/run_command.h"
#include "test/skip.h"

using namespace rocefs;

namespace {

// An engine and its control loop, each on its thread.
class Running {
 public:
  explicit Running(ClockMode mode, TimeNs start = 0, SavedTime* time = nullptr) {
    auto created = Engine::create({mode, 1, start, time}, loop);
    REQUIRE(created);
    engine = std::move(*created);
  }
  ~Running() {
    engine->stop();
    loop.stop();
    if (control_.joinable()) control_.join();
  }
  void start() {
    engine->start();
    control_ = std::thread([this] { loop.run(); });
  }

  // Asks on the core's thread, waits for the answer; the errno, 0 for success.
  int ask(std::function<void(Answer<void>)> request) {
    auto promise = std::make_shared<std::promise<int>>();
    Task task = [request, promise] {
      request(
          [promise](Result<void> result) { promise->set_value(result ? 0 : result.error().code); });
    };
    if (!engine->post(task)) std::abort();
    return promise->get_future().get();
  }
  int advance(TimeNs duration) {
    return ask(
        [this, duration](Answer<void> answer) { engine->advance(duration, std::move(answer)); });
  }
  int idle(TimeNs limit) {
    return ask([this, limit](Answer<void> answer) {
      engine->advance_until_idle(limit, std::move(answer));
    });
  }
  void on_core(const std::function<void()>& work) { test::run_command(*engine, work); }

  PollLoop loop;
  std::unique_ptr<Engine> engine;

 private:
  std::thread control_;
};

struct Ticker {
  Engine& engine;
  TimeNs period;
  int left;
  std::vector<TimeNs> fired;
  Event event;
  Ticker(Engine& e, TimeNs p, int n)
      : engine(e), period(p), left(n), event(event_of<&Ticker::tick>(this)) {}
  void tick(TimeNs now) {
    fired.push_back(now);
    if (--left > 0) {
      engine.scheduler().after(event, period);
    } else {
      --engine.outstanding().flows;
    }
  }
  void begin() {
    ++engine.outstanding().flows;
    engine.scheduler().after(event, period);
  }
};

}  // namespace

TEST_CASE("engine: virtual time advances as far as requested, and then stops") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  running.start();
  Ticker ticker(*running.engine, kMillisecond, 10);
  running.on_core([&] { ticker.begin(); });
  CHECK(running.engine->now() == 0);
  CHECK(running.advance(3 * kMillisecond + 5) == 0);
  CHECK(running.engine->now() == 3 * kMillisecond + 5);
  size_t fired = 0;
  running.on_core([&] { fired = ticker.fired.size(); });
  CHECK(fired == 3);
  CHECK(running.idle(kSecond) == 0);
  CHECK(running.engine->now() == 10 * kMillisecond);  // when the last work was done, no later
  CHECK(running.idle(kSecond) == 0);
  CHECK(running.engine->now() == 10 * kMillisecond);  // nothing to wait for
}

TEST_CASE("engine: idle gives up at its limit of virtual time") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  running.start();
  running.on_core([&] { ++running.engine->outstanding().requests; });
  CHECK(running.idle(5 * kSecond) == ETIMEDOUT);
  CHECK(running.engine->now() == 5 * kSecond);
}

TEST_CASE("engine: idle waits for settling work, and virtual time does not advance") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  running.start();
  running.on_core([&] { ++running.engine->outstanding().settling; });
  auto waiting = std::async(std::launch::async, [&] { return running.idle(kSecond); });
  running.on_core([] {});
  CHECK(waiting.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  running.on_core([&] { --running.engine->outstanding().settling; });
  CHECK(waiting.get() == 0);
  CHECK(running.engine->now() == 0);
}

TEST_CASE("engine: one advance at a time, a stop ends it with its code, real clocks refuse it") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  running.start();
  std::promise<int> first, second;
  auto telling = [](std::promise<int>& promise) {
    return [&promise](Result<void> result) { promise.set_value(result ? 0 : result.error().code); };
  };
  running.on_core([&] {
    running.engine->hold();  // the first cannot end by itself
    running.engine->advance(kSecond, telling(first));
    running.engine->advance(0, telling(second));
  });
  CHECK(second.get_future().get() == EBUSY);
  running.on_core([&] { running.engine->stop_advance(ECANCELED, "enough"); });
  CHECK(first.get_future().get() == ECANCELED);
  running.on_core([&] { running.engine->release(); });
  CHECK(running.advance(kNever) == EINVAL);

  Running real(ClockMode::kReal);
  real.start();
  CHECK(real.advance(1) == EOPNOTSUPP);
}

TEST_CASE("engine: a successor ends an interrupted advance at its original target time") {
  ON_EACH_LOOP();
  SavedTime time{};
  {
    Engine::Pause pause;  // outlives the engine: the held part may not run while the engine ends
    Running dies(ClockMode::kVirtual, 0, &time);
    dies.start();
    std::promise<void> stands;
    dies.on_core([&] {
      dies.engine->at({400, 0}, [&] {
        pause = dies.engine->pause();
        stands.set_value();
      });
      dies.engine->advance(
          1000, [](Result<void>) {}, 7);
    });
    stands.get_future().wait();
  }
  CHECK(time.now == 400);
  auto advance = [](Running& running, TimeNs duration, uint64_t name) {
    return running.ask([&running, duration, name](Answer<void> answer) {
      running.engine->advance(duration, std::move(answer), name);
    });
  };
  Running successor(ClockMode::kVirtual, time.now, &time);
  successor.start();
  CHECK(advance(successor, 1000, 7) == 0);
  CHECK(successor.engine->now() == 1000);
  CHECK(advance(successor, 1000, 7) == 0);  // it has ended without an answer
  CHECK(successor.engine->now() == 1000);
  CHECK(advance(successor, 1000, 9) == 0);
  CHECK(successor.engine->now() == 2000);
  CHECK(advance(successor, 1000, 0) == 0);
  CHECK(advance(successor, 1000, 0) == 0);
  CHECK(successor.engine->now() == 4000);
}

TEST_CASE("engine: under the real clock events run on their own, in order and never early") {
  ON_EACH_LOOP();
  Running running(ClockMode::kReal);
  running.start();
  Ticker ticker(*running.engine, 200 * kMicrosecond, 20);
  running.on_core([&] { ticker.begin(); });
  bool done = false;
  while (!done) running.on_core([&] { done = ticker.left == 0; });
  TimeNs now = running.engine->now();
  CHECK(now >= ticker.fired.back());
  for (size_t i = 1; i < ticker.fired.size(); ++i) {
    CHECK(ticker.fired[i] == ticker.fired[i - 1] + 200 * kMicrosecond);
  }
  Histogram lateness;
  running.engine->add_lateness(lateness);
  CHECK(lateness.count() > 0);
}

TEST_CASE("engine: commands beyond the inbox's capacity are refused, and no accepted one is lost") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  int run = 0, taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    Task task = [&] { ++run; };
    taken += running.engine->post(task);
  }
  CHECK(taken == 4096);
  running.start();
  std::promise<void> ran;
  for (bool posted = false; !posted;) {
    Task last = [&] { ran.set_value(); };
    posted = running.engine->post(last);
  }
  ran.get_future().wait();
  CHECK(run == 4096);
}

TEST_CASE("clock: dilation and slips never turn the clock back") {
  RealClock clock(1);
  TimeNs before = clock.now();
  clock.set_dilation(1000);
  TimeNs bent = clock.now();
  CHECK(bent >= before);
  CHECK(clock.now_at(monotonic_ns() + 1'000'000) - bent < 100 * kMillisecond);
  TimeNs later = clock.now_at(monotonic_ns() + kSecond);
  clock.slip(kMillisecond);
  CHECK(clock.now_at(monotonic_ns() + kSecond) < later);
}

TEST_CASE("engine: a task runs at its moment, between the events of one instant") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  std::vector<std::string> seen;
  struct Noting {
    std::vector<std::string>& seen;
    std::string name;
    void run(TimeNs) { seen.push_back(name); }
  };
  Noting first{seen, "first"}, second{seen, "second"}, later{seen, "later"};
  Event at_first = event_of<&Noting::run>(&first), at_second = event_of<&Noting::run>(&second),
        at_later = event_of<&Noting::run>(&later);
  Engine& engine = *running.engine;
  engine.scheduler().at(at_first, 100);
  engine.scheduler().at(at_second, 100);
  engine.scheduler().at(at_later, 101);
  auto note = [&](std::string name) { return [&, name] { seen.push_back(name); }; };
  engine.at({100, 2}, note("after two"));
  engine.at({100, 1}, note("after one"));
  engine.at({100, 0}, note("before"));
  engine.at({100, 0}, note("before too"));
  engine.at({100, 9}, note("as late as can be"));
  engine.at({50, 3}, note("where nothing else is"));
  Engine::TaskId never = engine.at({60, 0}, note("never"));
  engine.cancel(never);
  running.start();
  CHECK(running.advance(99) == 0);
  CHECK(seen == std::vector<std::string>{"where nothing else is"});
  CHECK(running.idle(kSecond) == 0);
  CHECK(engine.now() == 100);
  CHECK(running.advance(10) == 0);
  CHECK(seen == std::vector<std::string>{"where nothing else is", "before", "before too", "first",
                                         "after one", "second", "after two", "as late as can be",
                                         "later"});
}

TEST_CASE("engine: idle waits for scheduled tasks, and times out on those beyond its limit") {
  ON_EACH_LOOP();
  Running running(ClockMode::kVirtual);
  bool ran = false;
  running.engine->at({2 * kSecond, 0}, [&] { ran = true; });
  running.start();
  CHECK(running.idle(kSecond) == ETIMEDOUT);
  CHECK_FALSE(ran);
  CHECK(running.idle(kSecond) == 0);
  CHECK(ran);
  CHECK(running.engine->now() == 2 * kSecond);
}

TEST_CASE("engine: no event runs while a pause is held, and any thread may release it") {
  ON_EACH_LOOP();
  ClockMode mode = GENERATE(ClockMode::kVirtual, ClockMode::kReal);
  Running running(mode);
  Engine::Pause pause;
  std::atomic<bool> ran{false};
  running.engine->at({kMicrosecond, 0}, [&] { pause = running.engine->pause(); });
  running.engine->at({2 * kMicrosecond, 0}, [&] { ran = true; });
  running.start();
  std::future<int> advance;
  if (mode == ClockMode::kVirtual) {
    advance = std::async(std::launch::async, [&] { return running.advance(kMillisecond); });
  }
  for (bool is_paused = false; !is_paused;) running.on_core([&] { is_paused = pause != nullptr; });
  Moment here;
  running.on_core([&] { here = running.engine->moment(); });
  CHECK(here.at >= kMicrosecond);
  CHECK_FALSE(ran);
  Engine::Pause mine;
  running.on_core([&] { mine = std::move(pause); });
  mine.reset();
  while (!ran) std::this_thread::yield();
  if (advance.valid()) CHECK(advance.get() == 0);
}

TEST_CASE("engine: a pause may outlive the engine") {
  ON_EACH_LOOP();
  Engine::Pause pause;
  {
    Running running(ClockMode::kVirtual);
    pause = running.engine->pause();
    running.start();
  }
  pause.reset();
}

TEST_CASE("engine: post_retrying() keeps its commands in order while the inbox is full") {
  ON_EACH_LOOP();
  Running running(ClockMode::kReal);
  running.start();
  std::promise<void> stuck, go_on, refused, all;
  Task block = [&] {
    stuck.set_value();
    go_on.get_future().wait();
  };
  REQUIRE(running.engine->post(block));
  stuck.get_future().wait();
  std::vector<int> came;
  running.loop.post([&] {
    Task nothing = [] {};
    while (running.engine->post(nothing)) nothing = [] {};
    for (int i = 0; i < 10'000; ++i)
      running.engine->post_retrying([&came, i] { came.push_back(i); });
    running.engine->post_retrying([&all] { all.set_value(); });
    refused.set_value();
  });
  refused.get_future().wait();
  CHECK(came.empty());
  go_on.set_value();
  all.get_future().wait();
  REQUIRE(came.size() == 10'000);
  CHECK(std::is_sorted(came.begin(), came.end()));
}

TEST_CASE("engine: the core sleeps at once when a thread with little new work gets no CPU") {
  ON_EACH_LOOP();
  struct Giver final : Poller {
    Found poll(bool) override {
      if (looks == 0) return Found::kNothing;
      return looks++ == 1 ? Found::kSome : Found::kNothing;
    }
    bool may_sleep() override {
      if (looks > 1) looks_before_sleep.set_value(std::exchange(looks, 0));
      return true;
    }
    void awake() override {}
    TimeNs lag() override { return kMillisecond; }
    int looks = 0;
    std::promise<int> looks_before_sleep;
  } giver;
  Running running(ClockMode::kReal);
  running.engine->core(0).set_poller(giver);
  running.start();
  running.on_core([&] { giver.looks = 1; });
  CHECK(giver.looks_before_sleep.get_future().get() == 3);  // once with input, and then without
}

TEST_CASE("engine: the core stays awake for a while after it has given threads much work") {
  ON_EACH_LOOP();
  struct Giver final : Poller {
    Found poll(bool) override {
      if (!gives) return Found::kNothing;
      gives = false;
      given = monotonic_ns();
      return Found::kBulk;
    }
    bool may_sleep() override {
      if (given > 0) awake_ns.set_value(monotonic_ns() - std::exchange(given, 0));
      return true;
    }
    void awake() override {}
    TimeNs lag() override { return 0; }
    bool gives = false;
    TimeNs given = 0;
    std::promise<TimeNs> awake_ns;
  } giver;
  Running running(ClockMode::kReal);
  running.engine->core(0).set_poller(giver);
  running.start();
  running.on_core([&] { giver.gives = true; });
  CHECK(giver.awake_ns.get_future().get() >= 200 * kMicrosecond);
}

TEST_CASE("engine: the core stays awake for a moment after listen()") {
  ON_EACH_LOOP();
  struct Hearer final : Poller {
    Found poll(bool) override {
      if (std::exchange(hears, false)) {
        heard = monotonic_ns();
        engine->listen();
      }
      return Found::kNothing;
    }
    bool may_sleep() override {
      if (heard > 0) awake_ns.set_value(monotonic_ns() - std::exchange(heard, 0));
      return true;
    }
    void awake() override {}
    TimeNs lag() override { return 0; }
    Engine* engine = nullptr;
    bool hears = false;
    TimeNs heard = 0;
    std::promise<TimeNs> awake_ns;
  } hearer;
  Running running(ClockMode::kReal);
  hearer.engine = running.engine.get();
  running.engine->core(0).set_poller(hearer);
  running.start();
  for (int i = 0; i < 20; ++i) {  // another thread may take the CPU between
    hearer.awake_ns = {};
    running.on_core([&] { hearer.hears = true; });
    CHECK(hearer.awake_ns.get_future().get() >= 20 * kMicrosecond);
  }
}

TEST_CASE("engine: post_retrying() runs a command at once before start() and after stop()") {
  ON_EACH_LOOP();
  Running running(ClockMode::kReal);
  int ran = 0;
  running.engine->post_retrying([&] { ++ran; });
  CHECK(ran == 1);
  running.start();
  running.engine->stop();
  running.engine->post_retrying([&] { ++ran; });
  CHECK(ran == 2);
}
