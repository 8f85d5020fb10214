// The order in which queue pairs are called.
#include "pcc/run/agenda.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <tuple>
#include <vector>

#include "core/base/rng.h"

namespace rocefs {
namespace {

using Pair = std::tuple<TimeNs, uint32_t>;

Pair pair_of(const PccAgenda::Entry& entry) {
  return {entry.at, entry.place};
}

std::vector<Pair> taken(PccAgenda& agenda) {
  std::vector<Pair> all;
  while (const PccAgenda::Entry* first = agenda.front()) {
    all.push_back(pair_of(*first));
    agenda.pop();
  }
  return all;
}

TEST_CASE("agenda: entries at one time come by place") {
  PccAgenda agenda;
  agenda.push(10, 2);
  agenda.push(10, 1);
  agenda.push(5, 7);
  CHECK(agenda.size() == 3);
  CHECK(taken(agenda) == std::vector<Pair>{{5, 7}, {10, 1}, {10, 2}});
  CHECK(agenda.size() == 0);
}

TEST_CASE("agenda: a cleared one is empty and takes entries again") {
  PccAgenda agenda;
  agenda.push(20, 1);
  agenda.push(10, 1);
  agenda.clear();
  CHECK(agenda.front() == nullptr);
  CHECK(agenda.size() == 0);
  agenda.push(5, 3);
  CHECK(taken(agenda) == std::vector<Pair>{{5, 3}});
}

// Grows while its entries lie across the end of its memory.
TEST_CASE("agenda: the order is that of a sorted list, however many entries come and go") {
  PccAgenda agenda;
  Rng rng(1, "agenda");
  std::vector<Pair> expected;
  TimeNs now = 0;
  for (uint32_t place = 0; place < 6'000; ++place) {
    // Most at a fixed interval, some sooner; three come for two that go.
    TimeNs at = now + (rng.chance(0.1) ? static_cast<TimeNs>(rng.below(1000)) : 1000);
    agenda.push(at, place);
    expected.emplace_back(at, place);
    if (place % 3 == 0) continue;
    auto least = std::min_element(expected.begin(), expected.end());
    const PccAgenda::Entry* first = agenda.front();
    REQUIRE(first != nullptr);
    REQUIRE(pair_of(*first) == *least);
    now = std::max(now, first->at);
    agenda.pop();
    expected.erase(least);
  }
  CHECK(agenda.size() == expected.size());
  std::sort(expected.begin(), expected.end());
  CHECK(taken(agenda) == expected);
}

}  // namespace
}  // namespace rocefs
