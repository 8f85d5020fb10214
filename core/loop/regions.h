// Regions: parts of a fabric that run beside each other under the virtual clock, each with a
// scheduler of its own (conservative parallel simulation). What leaves a region takes at least the
// lookahead to the next one; so all of them run the events of a window of that length without
// waiting for each other. Windows lie between multiples of the lookahead; only at their ends
// regions exchange, in the order of their numbers. So results depend neither on how many threads
// there are nor on who stops the run in a window to look at it.
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
  // There is something to hand over.
  void note_sent() { sent_ = true; }

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
  uint64_t ran_ = 0;        // events in the latest step
  bool sent_ = false;       // since hand_over()
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
  // it is asked again after lookahead_changed().
  void set_lookahead(std::function<TimeNs()> lookahead);
  void lookahead_changed() { lookahead_known_ = false; }

  // Due time of the next event; kNever if there is none.
  TimeNs next();
  // Runs the next event of no region, or what is due in the regions' next window before that and by
  // `limit`. False if nothing is.
  bool step(TimeNs limit);
  // Whether the latest window has come to its end. Once begun, it goes there without events, too.
  bool between_windows() const { return last_ + 1 >= end_; }
  // Lets time pass up to `now`, which must not be later than next().
  void pass(TimeNs now);
  // While regions run, `task` runs alone at the end of the window, or before the next event of no
  // region, or by finish(): after those of earlier times. Else it runs at once. The region's
  // thread.
  void alone(size_t region, Task task);
  // Runs those tasks now: for what acts on all that has happened by now, or tells of it.
  void finish();

  // Sum of all regions.
  Outstanding outstanding() const;
  // Whether a flow runs in any region.
  bool any_flow() const;
  uint64_t events_run() const;

 private:
  TimeNs next_of_regions() const;
  void hand_over();
  void run_regions(TimeNs last);
  void run(Region& region, TimeNs last);

  Scheduler& common_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::function<TimeNs()> lookahead_;
  bool lookahead_known_ = false;
  TimeNs window_ = 1;             // length
  TimeNs end_ = 0;                // of the latest window: the next one begins there, or later
  std::vector<uint32_t> active_;  // regions that run
  TimeNs last_ = 0;               // last instant of the latest step
  bool runs_ = false;             // regions do
  uint64_t ran_ = 0;              // events of the latest step
  std::vector<Region::Late> late_;
  Team team_;
};

}  // namespace rocefs
