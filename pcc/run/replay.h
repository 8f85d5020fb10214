// PccReplay: a recording of calls, in its order, as input of an algorithm without a device.
//
// A recording leaves out, and a replay too: parameters that were set meanwhile, windows of
// another owner, events that the engine lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "pcc/run/offline.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class PccReplay {
 public:
  // `offline` outlives it.
  explicit PccReplay(PccOffline& offline) : offline_(offline) {}

  // An event that a later call of its queue pair took. ENOBUFS: more are there than pollers can
  // take at once.
  Result<void> add(const rocefs_qp_event& event);

  struct Step {
    bool replayed;
    // The queue pair is left out from this call on: those from `missing` to the one before it are
    // not in the recording. 0: it is replayed, or was left out already.
    uint32_t missing;
    PccOffline::Decision decision;  // if replayed
  };
  // A call of a queue pair, which is replayed from its first one on. The errors are those of
  // PccOffline::call().
  Result<Step> add(const rocefs_qp_call& call);

  uint64_t calls() const { return calls_; }
  // Queue pairs that began.
  uint64_t qps() const { return begun_; }

 private:
  // A call takes at most ROCEFS_EVENT_ENTRIES, and there are at most MANGO_PCC_MAX_THREADS of them.
  static constexpr size_t kMaxPending = size_t{ROCEFS_EVENT_ENTRIES} * MANGO_PCC_MAX_THREADS;

  struct Qp {
    uint32_t generation = 0;
    uint32_t number = 0;  // of the latest call
    bool goes_on = false;
    bool left_out = false;
    std::vector<rocefs_qp_event> pending;
  };

  PccOffline& offline_;
  std::unordered_map<uint32_t, Qp> qps_;  // by number
  size_t pending_ = 0;                    // events of all
  uint64_t calls_ = 0;
  uint64_t begun_ = 0;
};

}  // namespace rocefs
