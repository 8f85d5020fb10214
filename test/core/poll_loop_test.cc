#include "core/poll_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace rocefs;

TEST_CASE("poll loop: who gets the number of a closed descriptor does not get its event") {
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
