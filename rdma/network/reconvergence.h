// Reconvergence: what a fabric's routing knows of its cables. A change of a cable between two
// switches becomes known a delay after it has happened, as to a routing protocol (detection,
// flooding, computation and installation together), and then all switches compute their ways anew.
// While it is off, routes never change, and a switch knows its own cables alone.
//
// Core thread, or before the engine starts; any thread may read counters.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/scheduler.h"
#include "core/tree/knob.h"

namespace rocefs {

inline constexpr KnobRow kReconvergenceKnobs[] = {
    {"reconverge", KnobType::kBool, 0, 1, "0", "", "",
     "1: when a cable between two switches goes down or comes back, all switches compute their "
     "ways "
     "anew; 0: routes are those of all cables, and a switch avoids its own cables that are down"},
    {"delay", KnobType::kDuration, 0, 3'600'000'000'000, "1ms", "", "s",
     "time from the change of a cable until all switches have their new routes"},
};

struct ReconvergenceCounters {
  Counter convergences;
};
inline constexpr CounterRow<ReconvergenceCounters> kReconvergenceCounters[] = {
    {"convergences", &ReconvergenceCounters::convergences,
     "how often all switches computed their ways anew after a change of a cable"},
};

class Reconvergence final : public KnobOwner {
 public:
  // Cables by number. `works` says whether both directions of one do, `compute` sets the routes of
  // all switches by usable(). Changes wait for start().
  Reconvergence(Scheduler& scheduler, size_t cables, std::function<bool(uint32_t cable)> works,
                std::function<void()> compute);

  // Whether routes may lead over that cable.
  bool usable(uint32_t cable) const { return !enabled_ || works_known_[cable]; }
  // The state of a cable may have changed.
  void changed(uint32_t cable);
  // Forgets changes that are not known yet: routes follow the cables' states, in an event at this
  // instant.
  void reset();

  bool enabled() const { return enabled_; }
  TimeNs delay_ns() const { return delay_; }
  const ReconvergenceCounters& counters() const { return counters_; }
  ReconvergenceCounters& counters() { return counters_; }

  // Knobs, in the order of kReconvergenceKnobs. Routes follow at once when it is turned on or off.
  void apply(std::span<const KnobValue> values) override;
  std::vector<KnobValue> values() const {
    return {uint64_t{enabled_}, static_cast<uint64_t>(delay_)};
  }

 private:
  struct Change {
    TimeNs known_at;
    uint32_t cable;
    bool works;
  };
  void learn_all(TimeNs now);
  void on_known(TimeNs now);

  Scheduler& scheduler_;
  const std::function<bool(uint32_t)> works_;
  const std::function<void()> compute_;
  bool enabled_ = false;
  TimeNs delay_ = kMillisecond;
  std::vector<bool> works_known_;  // by cable
  std::vector<bool> works_now_;
  std::deque<Change> changes_;  // in the order in which they become known
  ReconvergenceCounters counters_;
  Event known_;
  Event learn_;
};

}  // namespace rocefs
