// Wake-ups of threads that wait for completions.
#include "rdma/client/completion_moderation.h"

#include <catch2/catch.hpp>

using namespace rocefs;

namespace {

constexpr uint64_t kMessage = 64 * 1024;

// For `count` messages posted at once that complete one after the other: the number of wake-ups,
// and the bytes left at the first.
std::pair<int, uint64_t> events(CompletionModeration& moderation, uint64_t count, uint64_t length) {
  std::pair<int, uint64_t> result{};
  for (uint64_t left = count; left-- > 0;) {
    if (moderation.raise_event(left * length) && result.first++ == 0) result.second = left * length;
  }
  return result;
}

}  // namespace

TEST_CASE("completion moderation: with little under way each completion raises an event") {
  CompletionModeration moderation;
  CHECK(events(moderation, 1, uint64_t{1} << 30) == std::pair<int, uint64_t>(1, 0));
  CHECK(events(moderation, 16, kMessage) == std::pair<int, uint64_t>(16, 15 * kMessage));
  CHECK(events(moderation, 1000, 8) == std::pair<int, uint64_t>(1000, 999 * 8));
}

TEST_CASE(
    "completion moderation: with much under way events come at halves, and for the last ones") {
  CompletionModeration moderation;
  for (int round = 0; round < 3; ++round) {
    // 8 MiB: once near 4, once near 2, and then of the last 16.
    CHECK(events(moderation, 128, kMessage) == std::pair<int, uint64_t>(18, 63 * kMessage));
  }
  // An owner that posts more in time is woken once for each half.
  int times = 0;
  for (uint64_t left = 128, round = 0; round < 1000; ++round) {
    if (!moderation.raise_event(--left * kMessage)) continue;
    ++times;
    left = 128;
  }
  CHECK(times == 15);
}
