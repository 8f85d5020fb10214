#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/rng.h"
#include "core/loop/scheduler.h"

using namespace rocefs;

namespace {

struct Asked {
  std::vector<int> steps;  // of the present schedule
  size_t calls = 0;
};

// Owner of an event, in whose memory the steps are noted: a call after its end is one of a freed
// owner, which AddressSanitizer reports.
struct Owner {
  mutable Asked asked;
  size_t whole = 0;  // runs that all steps came before
  Event event = event_of<&Owner::run, &Owner::prefetch>(this);
  std::function<void(Owner&)> on_run;

  void run(TimeNs) {
    if (asked.steps == std::vector{0, 1, 2, 3}) ++whole;
    asked.steps.clear();
    on_run(*this);
  }
  void prefetch(int step) const {
    CHECK(event.scheduled());
    CHECK((asked.steps.empty() || asked.steps.back() < step));
    asked.steps.push_back(step);
    ++asked.calls;
  }
};

struct Crowd {
  Scheduler scheduler;
  std::vector<std::unique_ptr<Owner>> owners;
  size_t runs = 0;

  explicit Crowd(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      owners.push_back(std::make_unique<Owner>());
      owners.back()->on_run = [this](Owner& owner) {
        ++runs;
        scheduler.after(owner.event, 1000);
      };
      scheduler.at(owners.back()->event, 1 + static_cast<TimeNs>(i % 500));
    }
  }
  size_t whole() const {
    size_t sum = 0;
    for (const auto& owner : owners) sum += owner->whole;
    return sum;
  }
  size_t calls() const {
    size_t sum = 0;
    for (const auto& owner : owners) sum += owner->asked.calls;
    return sum;
  }
};

}  // namespace

TEST_CASE("lookahead: of a crowd of events, each is asked for in four steps before it runs") {
  Crowd crowd(4000);
  crowd.scheduler.run_until(5000);
  CHECK(crowd.runs == 4000 * 5);
  // All but the first ones, while it fills up to five: one that runs makes room for two.
  CHECK(crowd.whole() >= crowd.runs - 10);
}

TEST_CASE("lookahead: few events are not asked for") {
  Crowd crowd(100);
  crowd.scheduler.run_until(5000);
  CHECK(crowd.runs == 500);
  CHECK(crowd.calls() == 0);
}

TEST_CASE("lookahead: events that are moved, cancelled or destroyed are not asked for any more") {
  Crowd crowd(4000);
  Rng rng(1, "lookahead");
  size_t moved = 0, alive = crowd.owners.size();
  for (auto& owner : crowd.owners) {
    owner->on_run = [&](Owner& self) {
      ++crowd.runs;
      crowd.scheduler.after(self.event, 1 + static_cast<TimeNs>(rng.below(1000)));
      // Most of the next events are among those that were asked for.
      for (auto& other : crowd.owners) {
        if (!other || other.get() == &self || rng.below(4000) > 0) continue;
        other->asked.steps.clear();
        if (rng.chance(0.2) && alive > 3500) {
          other.reset();
          --alive;
        } else if (rng.chance(0.5)) {
          crowd.scheduler.cancel(other->event);
        } else {
          ++moved;
          crowd.scheduler.after(other->event, static_cast<TimeNs>(rng.below(1000)));
        }
      }
    };
  }
  for (int i = 0; i < 1000; ++i) CHECK(crowd.scheduler.run_one(kNever - 1));
  CHECK(crowd.runs == 1000);
  CHECK(moved > 100);
  CHECK(alive < 4000);
}

TEST_CASE("lookahead: a crowd that is moved and cancelled runs in the order of a stable sort") {
  struct Planned {
    TimeNs due;
    uint64_t sequence;
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Crowd crowd(5000);
    Rng rng(seed, "crowd");
    uint64_t sequence = 0;
    std::vector<Planned> planned(crowd.owners.size());
    for (size_t i = 0; i < planned.size(); ++i) {
      planned[i] = {crowd.owners[i]->event.due(), ++sequence};
    }
    auto schedule = [&](size_t i) {
      // Across several turns of the wheel, and into the heap of near events.
      const TimeNs delay = 1 + static_cast<TimeNs>(rng.below(rng.chance(0.1) ? 20'000 : 3000));
      crowd.owners[i]->asked.steps.clear();
      crowd.scheduler.after(crowd.owners[i]->event, delay);
      planned[i] = {crowd.scheduler.now() + delay, ++sequence};
    };
    size_t wrong = 0;
    for (size_t i = 0; i < planned.size(); ++i) {
      crowd.owners[i]->on_run = [&, i](Owner&) {
        const Planned ran = planned[i];
        if (ran.due != crowd.scheduler.now()) ++wrong;
        planned[i].due = kNever;
        for (int n = 0; n < 20; ++n) {  // none of those that are looked at was due before
          const Planned& other = planned[rng.below(planned.size())];
          if (other.due < ran.due || (other.due == ran.due && other.sequence < ran.sequence))
            ++wrong;
        }
        schedule(i);
        const size_t other = rng.below(planned.size());
        if (rng.chance(0.1)) schedule(other);
        if (!rng.chance(0.02)) return;
        crowd.scheduler.cancel(crowd.owners[other]->event);
        planned[other].due = kNever;
        schedule((other + 1) % planned.size());
      };
    }
    for (int i = 0; i < 50'000; ++i) {
      if (!crowd.scheduler.run_one(kNever - 1)) break;
    }
    CHECK(wrong == 0);
    CHECK(crowd.scheduler.now() > 2 * EventWheel::kSpan);
  }
}
