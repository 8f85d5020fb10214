// Regions: parts of a fabric that run beside each other under the virtual clock, each with a
// scheduler of its own (conservative parallel simulation). What leaves a region takes at least the
// lookahead to the next one; so all of them run the events of a window of that length without
// waiting for each other. Windows follow from events alone, and regions exchange in the order of
// their numbers: results do not depend on how many threads there are.
//
// The engine's thread calls everything here that does not say otherwise, and is one of the threads.
// Alone means: no region runs, so all of them may be touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/task.h"
#include "core/base/time.h"
#include "core/loop/outstanding.h"
#include "core/loop/scheduler.h"
#include "core/loop/team.h"

namespace rocefs {

// RegionWork: what the owner of a region's objects does around a window.
class RegionWork {
 public:
  // The thread that runs the region: before its events, takes what it has been handed; and after
  // them.
  virtual void enter() = 0;
  virtual void leave() = 0;
  // Alone: hands what the region has sent in this window to the others, and tells each when it is
  // due: Region::expect().
  virtual void hand_over() = 0;

 protected:
  ~RegionWork() = default;
};

// Thread that runs it in a window, or alone.
class Region {
 public:
  Scheduler& scheduler() { return scheduler_; }
  Outstanding& outstanding() { return outstanding_; }
  // Before the first step; the work outlives the regions' steps.
  void set_work(RegionWork& work) { work_ = &work; }
  // Alone: something that enter() will take is due then.
  void expect(TimeNs due) { expected_ = std::min(expected_, due); }

 private:
  friend class Regions;
  struct Late {
    TimeNs at;
    Task task;
  };

  Scheduler scheduler_;
  Outstanding outstanding_;
  RegionWork* work_ = nullptr;
  TimeNs expected_ = kNever;
  uint64_t ran_ = 0;        // events in the latest window
  std::vector<Late> late_;  // tasks for the end of the window
};

class Regions {
 public:
  // `common`: the scheduler of what belongs to no region; its events run alone, before those of
  // regions at the same time. Threads are those of all together, from 1.
  Regions(Scheduler& common, size_t count, size_t threads);

  size_t count() const { return regions_.size(); }
  Region& operator[](size_t number) { return *regions_[number]; }
  // `lookahead` tells the least time that anything takes from one region to another, at least 1 ns;
  // it is asked again after changed().
  void set_lookahead(std::function<TimeNs()> lookahead);
  void lookahead_changed() { lookahead_known_ = false; }

  // Due time of the next event; kNever if there is none.
  TimeNs next() const;
  // Runs the next event of no region, or the regions' next window, of what is due by `limit`. False
  // if nothing is.
  bool step(TimeNs limit);
  // Lets time pass up to `now`, which must not be later than next().
  void pass(TimeNs now);
  // Hands over what is between regions: all of it is in their objects then.
  void settle();
  // In a region's window, `task` runs at the window's end, alone, after those of earlier times;
  // else at once. The region's thread.
  void alone(size_t region, Task task);

  // Sum of all regions.
  Outstanding outstanding() const;
  // Whether a flow runs in any region.
  bool any_flow() const;
  uint64_t events_run() const;

 private:
  void run_window(TimeNs last);
  void run(Region& region, TimeNs last);
  void run_late();

  Scheduler& common_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::function<TimeNs()> lookahead_;
  bool lookahead_known_ = false;
  TimeNs window_ = 1;
  std::vector<uint32_t> active_;  // regions of the window that runs
  TimeNs last_ = 0;               // end of that window
  bool runs_ = false;             // a window does
  uint64_t ran_ = 0;              // events of the latest window
  std::vector<Region::Late> late_;
  Team team_;
};

}  // namespace rocefs
