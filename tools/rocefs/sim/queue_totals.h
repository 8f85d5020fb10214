// QueueTotals: how long the egress queues of switches were over the time of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rdma/network/fabric.h"
#include "tools/rocefs/sim/figures.h"

namespace rocefs {

// An egress queue that had a packet. Octets weighted by time, from the begin of the run to its end:
// what samples at fixed, very short intervals would give.
struct QueueTotals {
  std::string of;    // SWITCH/ports/PORT/queue/PRIORITY
  std::string link;  // out of that port
  size_t priority = 0;
  Figures octets{};
  double busy = 0;         // part of the time for which it was not empty
  uint64_t paused_ns = 0;  // PFC had stopped it
  uint64_t marked = 0, dropped = 0;
};

struct AllQueues {
  std::vector<QueueTotals> queues;  // by switch, port and priority
  // All of them together: a moment of each counts the same.
  Figures octets{};
  // Queue with the highest 99th percentile, then the highest maximum; null if none was used.
  const QueueTotals* worst() const;

  // While the engine stands still, at `now`. Switches that do not measure their queues have none.
  static AllQueues of(const Fabric& fabric, TimeNs now);
};

// Columns and lines of queues.csv.
std::string queues_csv_head();
std::string queues_csv(const std::string& variant, const AllQueues& all);

}  // namespace rocefs
