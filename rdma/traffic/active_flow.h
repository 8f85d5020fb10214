// ActiveFlow: the common part of flows that run, with both ends in this mount or one: begin, end,
// and the event at which completions are taken.
//
// Core thread.
#pragma once

#include <memory>

#include "core/loop/scheduler.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow_endpoint.h"
#include "rdma/traffic/flow_run.h"

namespace rocefs {

class ActiveFlow : public FlowRun, protected FlowEndpoint::Handler {
 public:
  void stop() final;

 protected:
  // `apart`: see below.
  explicit ActiveFlow(FlowParts parts, bool apart = false);
  // A derived class calls stop() in its destructor.
  ~ActiveFlow() override = default;

  virtual void on_completions(TimeNs now) = 0;
  // Closes the endpoints and cancels the derived class' events. Again is harmless.
  virtual void close() = 0;

  void begin();
  void end(TimeNs now, Result<void> result);
  // Takes completions after that time.
  void poll_after(TimeNs time);

  const FlowParts& parts() const { return parts_; }
  const FlowSpec& spec() const { return parts_.spec; }
  FlowStats& stats() { return *parts_.stats; }
  // Resources of the packet core on which the flow runs, that of its `from`.
  FabricResources& part() { return part_; }
  Scheduler& scheduler() { return part_.scheduler(); }
  bool running() const { return running_; }
  // Whether what touches devices of both ends, and registered memory, is done alone: another thread
  // may run the far end, or in regions have packets of flows that have ended.
  bool apart() const { return apart_; }
  bool reads() const { return spec().op == FlowOp::kRead; }

 private:
  void completion_queued() override { poll_after(0); }
  void device_removed() override;
  void halt();
  void report(Result<void> result);

  FlowParts parts_;
  FabricResources& part_;
  Event poll_;
  const bool apart_;
  bool running_ = false;
  std::shared_ptr<const bool> ending_;  // apart: from its end until it is closed alone
};

}  // namespace rocefs
