#include "core/loop/team.h"

#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

using namespace rocefs;

TEST_CASE("team: each job of a list is done once, and seen by the caller") {
  constexpr uint32_t kJobs = 23;
  for (size_t threads : {1, 2, 4}) {
    std::array<uint64_t, kJobs> done{};  // not atomic: run() orders it
    Team team(threads, kJobs, [&](uint32_t job) { done[job] += job + 1; });
    std::vector<uint32_t> jobs;
    uint64_t rounds = 0;
    for (; rounds < 2000; ++rounds) {
      jobs.clear();
      for (uint32_t job = rounds % 3; job < kJobs; job += 1 + rounds % 2) jobs.push_back(job);
      std::array<uint64_t, kJobs> before = done;
      team.run(jobs);
      for (uint32_t job : jobs) before[job] += job + 1;
      REQUIRE(done == before);
    }
  }
}

TEST_CASE("team: threads that have gone to sleep wake up, and those that sleep end") {
  std::array<std::thread::id, 2> by;
  std::atomic<int> here{0};
  // Each of two jobs waits until the other one has begun: they need two threads.
  Team team(2, 2, [&](uint32_t job) {
    by[job] = std::this_thread::get_id();
    here.fetch_add(1);
    while (here.load() % 2 != 0) std::this_thread::yield();
  });
  const std::vector<uint32_t> both = {0, 1};
  for (int i = 0; i < 3; ++i) {
    team.run(both);
    CHECK(by[0] != by[1]);
    // Long enough for the other one to leave its spinning; nothing depends on it.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}
