#include <catch2/catch.hpp>
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
  Asked asked;
  bool runs_next = false;
  size_t whole = 0;  // runs that all steps came before
  Event event = event_of<&Owner::run, &Owner::prefetch>(this);
  std::function<void(Owner&)> on_run;

  void run(TimeNs) {
    if (asked.steps == std::vector{0, 1, 2, 3}) ++whole;
    asked.steps.clear();
    on_run(*this);
  }
  void prefetch(int step) const {
    auto& noted = const_cast<Asked&>(asked);
    CHECK(event.scheduled());
    CHECK((noted.steps.empty() || noted.steps.back() < step));
    noted.steps.push_back(step);
    ++noted.calls;
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
  // All but the first few, for which there was no time.
  CHECK(crowd.whole() >= crowd.runs - 5);
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
  size_t moved = 0;
  for (auto& owner : crowd.owners) {
    owner->on_run = [&](Owner& self) {
      ++crowd.runs;
      crowd.scheduler.after(self.event, 1 + static_cast<TimeNs>(rng.below(1000)));
      // Most of the next events are among those that were asked for.
      for (auto& other : crowd.owners) {
        if (!other || other.get() == &self || rng.below(4000) > 0) continue;
        other->asked.steps.clear();
        if (rng.chance(0.2) && crowd.owners.size() > 3500) {
          other.reset();
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
}
