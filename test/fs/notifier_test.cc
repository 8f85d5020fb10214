// Notifier: changes that the kernel does not take.
#include "fs/notifier.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

using namespace rocefs;

TEST_CASE("notifier: does not wait for ever for a directory that a program holds") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  char page[4096] = {};
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  while (::write(ends[1], page, sizeof page) > 0) continue;
  ::fcntl(ends[1], F_SETFL, 0);  // full: the next write waits, as one to a kernel that does

  PollLoop loop;
  auto invalidator = Invalidator::start();
  REQUIRE(invalidator);
  std::vector<Ino> stalled;
  Notifier notifier(
      loop, std::move(*invalidator), [&](Ino directory) { stalled.push_back(directory); },
      kMillisecond);
  notifier.connect(ends[1]);
  notifier.entry_changed(7, "gone");
  notifier.entry_changed(8, "gone");
  int known = 0;
  notifier.when_known([&] { ++known, loop.stop(); });
  CHECK(known == 0);
  loop.run();
  CHECK(known == 1);
  CHECK(stalled == std::vector<Ino>{7});

  notifier.when_known([&] { ++known, loop.stop(); });  // told already: at once
  loop.run();
  CHECK(known == 2);
  CHECK(stalled.size() == 1);
  ::close(ends[0]);  // ends the write
  ::close(ends[1]);
}
