#include "core/loop/scheduler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "core/base/rng.h"

using namespace rocefs;

namespace {

struct Probe {
  std::vector<int>& order;
  int number;
  Event event;
  Probe(std::vector<int>& o, int n) : order(o), number(n), event(event_of<&Probe::fire>(this)) {}
  void fire(TimeNs) { order.push_back(number); }
};

// On both sides of the limits between the wheel, the heap of near events and that of timers.
TimeNs some_delay(Rng& rng) {
  constexpr TimeNs kBases[] = {0, 0, EventWheel::kSpan - 15, 300 * kMicrosecond, kMillisecond - 10};
  return kBases[rng.below(std::size(kBases))] + static_cast<TimeNs>(rng.below(30));
}

}  // namespace

TEST_CASE("scheduler: events run by time, and at the same time in the order of scheduling") {
  Scheduler scheduler;
  std::vector<int> order;
  std::vector<std::unique_ptr<Probe>> probes;
  for (int i = 0; i < 6; ++i) probes.push_back(std::make_unique<Probe>(order, i));
  scheduler.at(probes[0]->event, 20);
  scheduler.at(probes[1]->event, 10);
  scheduler.at(probes[2]->event, 10);
  scheduler.at(probes[3]->event, 5);
  scheduler.at(probes[4]->event, 99);
  scheduler.run_until(50);
  CHECK(order == std::vector<int>{3, 1, 2, 0});
  CHECK(scheduler.now() == 50);
  CHECK(scheduler.next() == 99);
}

TEST_CASE("scheduler: events of all instants are counted, cancelled and later ones are not") {
  Scheduler scheduler;
  std::vector<int> order;
  Probe a(order, 1), b(order, 2), c(order, 3), cancelled(order, 4), later(order, 5);
  scheduler.at(a.event, 10);
  scheduler.at(b.event, 10);
  scheduler.at(cancelled.event, 15);
  scheduler.cancel(cancelled.event);
  scheduler.at(later.event, 99);
  scheduler.run_until(10);
  CHECK(scheduler.events_run() == 2);
  CHECK(scheduler.moment().events == 2);
  scheduler.at(c.event, 20);
  scheduler.run_until(50);
  CHECK(scheduler.events_run() == 3);
  CHECK(scheduler.moment().events == 0);
}

TEST_CASE("scheduler: an event can be moved and cancelled, and is removed when it is destroyed") {
  Scheduler scheduler;
  std::vector<int> order;
  auto a = std::make_unique<Probe>(order, 1), b = std::make_unique<Probe>(order, 2);
  scheduler.at(a->event, 10);
  scheduler.at(b->event, 20);
  scheduler.at(a->event, 30);  // later
  CHECK(scheduler.next() == 20);
  scheduler.at(a->event, 5);  // earlier
  CHECK(scheduler.next() == 5);
  scheduler.cancel(a->event);
  CHECK_FALSE(a->event.scheduled());
  CHECK(a->event.due() == kNever);
  b.reset();
  CHECK(scheduler.next() == kNever);
  scheduler.run_until(100);
  scheduler.at(a->event, 7);  // in the past: now
  CHECK(a->event.due() == 100);
}

TEST_CASE("scheduler: events that schedule, move and cancel others while running keep the order") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed, "busy");
    Scheduler scheduler;
    struct Busy {
      Rng& rng;
      Scheduler& scheduler;
      std::vector<std::unique_ptr<Busy>>& all;
      int& ran;
      Event event;
      Busy(Rng& r, Scheduler& s, std::vector<std::unique_ptr<Busy>>& a, int& n)
          : rng(r), scheduler(s), all(a), ran(n), event(event_of<&Busy::fire>(this)) {}
      void fire(TimeNs now) {
        if (event.scheduled() || scheduler.now() != now) ran = -1'000'000;
        ++ran;
        // Itself last, first, or not at all; the others at random.
        bool again = rng.chance(0.7), first = rng.chance(0.5);
        auto delay = some_delay(rng);
        if (again && first) scheduler.after(event, delay);
        for (uint64_t i = rng.below(4); i > 0; --i) {
          Event& other = all[rng.below(all.size())]->event;
          if (rng.chance(0.3)) {
            scheduler.cancel(other);
          } else {
            scheduler.after(other, some_delay(rng));
          }
        }
        if (again && !first) scheduler.after(event, delay);
      }
    };
    std::vector<std::unique_ptr<Busy>> all;
    int ran = 0;
    for (int i = 0; i < 40; ++i) all.push_back(std::make_unique<Busy>(rng, scheduler, all, ran));
    for (auto& busy : all) scheduler.at(busy->event, some_delay(rng));
    for (int step = 0; step < 2000; ++step) {
      TimeNs least = kNever;
      for (auto& busy : all) least = std::min(least, busy->event.due());
      REQUIRE(scheduler.next() == least);
      if (!scheduler.run_one(kNever - 1)) break;
      REQUIRE(scheduler.now() == least);
    }
    CHECK(ran > 0);
  }
}

TEST_CASE("scheduler: random schedules run in the order of a stable sort") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed, "scheduler");
    Scheduler scheduler;
    std::vector<int> order;
    std::vector<std::unique_ptr<Probe>> probes;
    struct Planned {
      TimeNs due;
      uint64_t sequence;
      int number;
    };
    std::vector<Planned> planned;
    uint64_t sequence = 0;
    for (int i = 0; i < 200; ++i) {
      probes.push_back(std::make_unique<Probe>(order, i));
      planned.push_back({0, 0, i});
    }
    for (int step = 0; step < 600; ++step) {
      auto i = rng.below(200);
      // Timers at first, then half of them near events, then events of the wheel.
      if (step == 200) scheduler.pass(25);
      if (step == 400) scheduler.pass(kMillisecond - EventWheel::kSpan + 50);
      planned[i].due = kMillisecond + static_cast<TimeNs>(rng.below(50));
      planned[i].sequence = ++sequence;
      scheduler.at(probes[i]->event, planned[i].due);
      if (rng.chance(0.1)) {
        auto gone = rng.below(200);
        scheduler.cancel(probes[gone]->event);
        planned[gone].sequence = 0;
      }
    }
    std::erase_if(planned, [](const Planned& p) { return p.sequence == 0; });
    std::sort(planned.begin(), planned.end(), [](const Planned& a, const Planned& b) {
      return a.due != b.due ? a.due < b.due : a.sequence < b.sequence;
    });
    scheduler.run_until(kSecond);
    REQUIRE(order.size() == planned.size());
    for (size_t i = 0; i < order.size(); ++i) REQUIRE(order[i] == planned[i].number);
  }
}
