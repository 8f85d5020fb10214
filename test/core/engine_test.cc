#include "core/engine.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <future>

#include "test/skip.h"

using namespace rocefs;

namespace {

// An engine and its control loop, each on its thread.
class Running {
 public:
  explicit Running(ClockMode mode) {
    auto created = Engine::create({mode, 1}, loop);
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
  void on_core(std::function<void()> work) {
    std::promise<void> done;
    Task task = [&] {
      work();
      done.set_value();
    };
    if (!engine->post(task)) std::abort();
    done.get_future().wait();
  }

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

#define NEEDS_IO_URING() \
  if (PollLoop loop; !Engine::create({}, loop)) return test::skip("io_uring is forbidden here")

}  // namespace

TEST_CASE("engine: virtual time moves as far as it is told, and then stands") {
  NEEDS_IO_URING();
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

TEST_CASE("engine: idle gives up after its limit of virtual time") {
  NEEDS_IO_URING();
  Running running(ClockMode::kVirtual);
  running.start();
  running.on_core([&] { ++running.engine->outstanding().requests; });
  CHECK(running.idle(5 * kSecond) == ETIMEDOUT);
  CHECK(running.engine->now() == 5 * kSecond);
}

TEST_CASE("engine: idle waits for the world to settle, without time passing") {
  NEEDS_IO_URING();
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

TEST_CASE("engine: one advance at a time; a stop ends it with its code; real clocks have none") {
  NEEDS_IO_URING();
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
  CHECK(running.advance(kNever) == ERANGE);

  Running real(ClockMode::kReal);
  real.start();
  CHECK(real.advance(1) == EOPNOTSUPP);
}

TEST_CASE("engine: under the real clock events run by themselves, in order, never early") {
  NEEDS_IO_URING();
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
  CHECK(running.engine->lateness().count() > 0);
}

TEST_CASE("engine: too many waiting commands are refused, none is lost") {
  NEEDS_IO_URING();
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

TEST_CASE("clock: dilation and slips bend time, never turn it back") {
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

TEST_CASE("io_uring: where it is forbidden the reason names what to allow") {
  pid_t child = ::fork();
  if (child == 0) {
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{std::size(filter), filter};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      ::_exit(77);
    }
    auto ring = IoRing::create(8);
    bool told = !ring && ring.error().code == EPERM &&
                ring.error().reason.find("io_uring_setup") != std::string::npos &&
                ring.error().reason.find("seccomp") != std::string::npos;
    ::_exit(told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) return test::skip("no seccomp filters here");
  CHECK(WEXITSTATUS(status) == 0);
}
