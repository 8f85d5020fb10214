// Workload: the loads of a run. It starts each flow at its time, on the packet core, and tells of
// each end: a flow costs nothing before it starts, and nothing once it has ended.
//
// Core thread, as a command or an event of the common scheduler, but where said otherwise.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/loop/scheduler.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"
#include "rdma/workload/load_spec.h"

namespace rocefs {

struct LoadFlow {
  const Load& load;
  uint64_t number;  // in its load, from 0
  FlowStart what;
  TimeNs start = 0, end = 0;
  Result<void> result = {};  // of a flow that has ended
  bool removed = false;      // by a reset, before it ended
  const FlowStats& stats;
};

class WorkloadListener {
 public:
  virtual ~WorkloadListener() = default;
  // A flow has ended: well, or it failed, or a reset removed it.
  virtual void load_flow_ended(const LoadFlow& flow) = 0;
  // A round has ended in which no flow failed.
  virtual void load_round_ended(const Load& load, const RoundTimes& round) = 0;
  // All flows of all loads have ended. Called once, but after a stop().
  virtual void loads_over() {}
};

struct WorkloadLimits {
  QpOwner owner = {};                  // of all queue pairs
  uint64_t most_running = UINT64_MAX;  // flows at once; more fail, each a while after its start
};

class Workload {
 public:
  // Any thread, before begin(). `fabric` and `listener` outlive the workload.
  Workload(Fabric& fabric, std::vector<Load> loads, WorkloadListener& listener,
           WorkloadLimits limits = {});
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  void begin();
  // Removes the flows that run, as a reset does those of traffic/. What is to come starts at its
  // time; what waits for a flow that was removed follows.
  void remove_running();
  // Stops the flows that run, and starts no more; tells `listener` of none.
  void stop();
  // Calls `tell` with each flow that runs, and what it has done by now.
  template <class Tell>
  void each_running(Tell tell) const {
    for (const Running& one : running_) {
      if (one.flow) one.flow->account();
      tell(told(one));
    }
  }

  // Whether all flows have ended, and none is to come.
  bool over() const { return running_.empty() && next_start() == kNever; }
  // Names of loads with flows that start at a time.
  std::vector<std::string> to_come() const;
  // Loads whose flows have all ended, and which cannot go on: NAME: WHY.
  std::vector<std::string> stuck() const;
  uint64_t started() const { return started_; }
  uint64_t ended() const { return started_ - running_.size(); }
  // Flows of the whole run, as far as it can be told at `now`: a load that ends at a time is taken
  // to go on as before.
  uint64_t expected(TimeNs now) const;

 private:
  struct Source {
    Load load;
    uint64_t started = 0;
    bool any_failed = false;  // a flow of the round that runs
  };
  struct Running {
    Source* source;
    uint64_t number;
    FlowStart what;
    TimeNs start;
    std::shared_ptr<FlowStats> stats;
    std::unique_ptr<Flow> flow;
    std::shared_ptr<const bool> runs;  // expires when it is no longer among running_
    bool arrived = false;              // the pattern knows
  };
  using Place = std::list<Running>::iterator;

  static TimeNs due(const Source& source);
  TimeNs next_start() const;
  LoadFlow told(const Running& one) const;
  void on_due(TimeNs now);
  void start_flow(Source& source, const FlowStart& what, TimeNs now);
  void tell_round(Source& source);
  void flow_arrived(Place place);
  void flow_ended(Place place, Result<void> result);
  void tell(Place place, Task task);
  void settle(Place place, LoadFlow flow);
  void on_refused(TimeNs now);
  void on_reap(TimeNs now);
  void schedule();
  void refuse(Place place, Error why);

  Fabric& fabric_;
  std::vector<Source> sources_;
  WorkloadListener& listener_;
  const WorkloadLimits limits_;
  std::list<Running> running_;
  std::vector<std::unique_ptr<Flow>> ended_;      // freed in an event of their own
  std::vector<std::pair<Place, Error>> refused_;  // flows that could not start
  const std::shared_ptr<FlowStats> no_stats_;     // theirs
  uint64_t started_ = 0;
  Event due_, refuse_, reap_;
};

}  // namespace rocefs
