// LoadProgress: what is known of a load's flows without keeping them: counts, and flow completion
// times by flow size. Its memory is bounded by the number of sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/log_histogram.h"
#include "core/base/time.h"
#include "rdma/workload/workload.h"

namespace rocefs {

struct LoadProgress {
  uint64_t started = 0, done = 0, failed = 0;
  uint64_t bytes = 0;  // of flows that are done
  uint64_t rounds = 0;
  TimeNs rounds_ns = 0;       // sum
  std::string first_failure;  // NUMBER: WHY
  LogHistogram fct_ns;
  std::map<uint64_t, LogHistogram> fct_by_size;  // by the largest size, a power of two

  void add(const LoadFlow& flow);
  void add(const RoundTimes& round);
  // `key value` lines.
  std::string text() const;
};

}  // namespace rocefs
