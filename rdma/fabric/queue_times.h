// QueueTimes: for how long each egress queue of a switch had how many octets. A queue costs memory
// once it is used, and time at each change of its length alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/log_histogram.h"
#include "core/base/time.h"
#include "rdma/packet/traffic_class.h"

namespace rocefs {

// Nanoseconds by octets. Each quantile is right to within 1/64 (1.6 %).
using OctetTimes = BasicLogHistogram<5>;

// Core thread, or while the engine stands still.
class QueueTimes {
 public:
  // All queues are empty at `begin`.
  QueueTimes(size_t ports, TimeNs begin) : begin_(begin), queues_(ports * kPriorities) {}

  // The queue had `octets` until now, and is about to have others.
  void changes(size_t port, size_t priority, uint64_t octets, TimeNs now) {
    std::unique_ptr<Queue>& queue = queues_[port * kPriorities + priority];
    if (!queue) queue = std::make_unique<Queue>(Queue{begin_, {}});
    // A packet that passes an idle queue is the usual case: its length lasted no time.
    if (now == queue->since && octets <= queue->times.max()) return;
    queue->times.add(octets, static_cast<uint64_t>(now - queue->since));
    queue->since = now;
  }
  // Null for a queue that had never an octet. Times are those up to its last change.
  const OctetTimes* find(size_t port, size_t priority) const {
    const std::unique_ptr<Queue>& queue = queues_[port * kPriorities + priority];
    return queue ? &queue->times : nullptr;
  }

 private:
  struct Queue {
    TimeNs since;  // last change
    OctetTimes times;
  };
  const TimeNs begin_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace rocefs
