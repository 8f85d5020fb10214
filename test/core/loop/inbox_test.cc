// The inbox of commands between threads.
#include <catch2/catch.hpp>
#include <thread>

#include "core/loop/inbox.h"

using namespace rocefs;

TEST_CASE("inbox: every command runs once, in each poster's order, and a full inbox refuses") {
  Inbox inbox(100'000);
  std::vector<int> last(4, -1);
  int count = 0, disorder = 0;
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 4; ++poster) {
    posters.emplace_back([&, poster] {
      for (int i = 0; i < 5000; ++i) {
        Task task = [&, poster, i] {
          disorder += last[static_cast<size_t>(poster)] + 1 != i;
          last[static_cast<size_t>(poster)] = i;
          ++count;
        };
        while (!inbox.post(task)) std::this_thread::yield();
      }
    });
  }
  while (count < 20'000) inbox.drain();
  for (auto& poster : posters) poster.join();
  CHECK(count == 20'000);
  CHECK(disorder == 0);

  Inbox small(2);
  Task task = [] {};
  CHECK(small.post(task));
  task = [] {};
  CHECK(small.post(task));
  task = [] {};
  CHECK_FALSE(small.post(task));
  CHECK(task);  // still ours
  CHECK(small.drain() == 2);
  CHECK(small.post(task));
}
