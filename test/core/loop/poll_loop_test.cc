#include "core/loop/poll_loop.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/loop/loop_timer.h"

using namespace rocefs;

TEST_CASE("poll loop: a reused descriptor number does not get the closed descriptor's event") {
  PollLoop loop;
  Fd fds[2];
  int begun = 0, heirs = 0;
  for (Fd& fd : fds) fd = Fd(::eventfd(1, EFD_CLOEXEC));
  for (int i : {0, 1}) {
    // Both are readable. Whichever comes first ends the other, whose number is a quiet one's then.
    loop.watch(fds[i].get(), [&, i] {
      ++begun;
      int number = fds[1 - i].get();
      for (Fd& fd : fds) loop.unwatch(fd.get());
      fds[1 - i].reset();
      Fd quiet(::eventfd(0, EFD_CLOEXEC));
      REQUIRE(quiet.get() == number);
      fds[1 - i] = std::move(quiet);
      loop.watch(number, [&] { ++heirs; });
      loop.post([&] { loop.stop(); });
    });
  }
  loop.run();
  CHECK(begun == 1);
  CHECK(heirs == 0);
}

TEST_CASE("poll loop: timers fire when due, in order, and need no descriptors") {
  PollLoop loop;
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  rlimit none{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::string order;
  TimeNs began = monotonic_ns(), last = 0;
  std::optional<LoopTimer> once, never;
  LoopTimer late(loop, [&] {
    last = monotonic_ns();
    order += 'l';
    loop.stop();
  });
  LoopTimer early(loop, [&] {
    order += 'e';
    never.reset();
  });
  once.emplace(loop, [&] {
    order += 'o';
    once.reset();  // while it runs
  });
  never.emplace(loop, [&] { order += 'n'; });
  LoopTimer moved(loop, [&] { order += 'm'; });
  moved.arm(0);
  late.arm(20 * kMillisecond);
  never->arm(10 * kMillisecond);
  early.arm(5 * kMillisecond);
  once->arm(-1);
  moved.arm(2 * kMillisecond);
  loop.run();
  CHECK(order == "omel");
  CHECK(last - began >= 20 * kMillisecond);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
}
