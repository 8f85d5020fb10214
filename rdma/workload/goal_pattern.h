// GoalPattern: the flows of a GOAL schedule: a flow for each send, as soon as what it waits for is
// over. Rank i is the i-th host of the load.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "rdma/workload/goal_run.h"
#include "rdma/workload/pattern.h"

namespace rocefs {

class GoalPattern final : public Pattern {
 public:
  // Checks the whole file: also that it has no more ranks than there are hosts, and that no
  // operation waits for ever if messages take no time. The reason of a failure is FILE:LINE: WHY.
  static Result<std::unique_ptr<GoalPattern>> open(const std::string& path, size_t hosts,
                                                   TimeNs start);

  uint64_t total() const override { return sends_; }
  std::string stuck() const override;
  bool waits_for_arrivals() const override { return true; }
  void flow_arrived(const FlowStart& flow, TimeNs now) override;

 private:
  GoalPattern(std::string path, std::shared_ptr<const GoalSchedule> schedule, uint64_t sends,
              TimeNs start);
  TimeNs wake() const override { return run_.next(); }
  void woken(TimeNs now) override;
  void plan_sends(TimeNs now);

  const std::string path_;
  const std::shared_ptr<const GoalSchedule> schedule_;
  const uint64_t sends_;
  const TimeNs start_;
  GoalRun run_;
};

}  // namespace rocefs
