// FlowStatistics: what is known of all flows of a run without keeping them: how many ended in which
// state, and the distributions of FCT and slowdown by flow size. Memory is bounded: two histograms
// for each power of two of the size.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/log_histogram.h"
#include "tools/rocefs/sim/flow_record.h"

namespace rocefs {

// Flows that are done.
struct FlowDistribution {
  LogHistogram fct_ns;
  LogHistogram slowdown_millionths;

  void add(const FlowRecord& flow);
  void merge(const FlowDistribution& other);
  uint64_t count() const { return fct_ns.count(); }
};

inline constexpr double kSlowdownUnit = 1e-6;

// One thread at a time.
class FlowStatistics final : public FlowSink {
 public:
  static constexpr size_t kStates = static_cast<size_t>(FlowRecord::State::kNotStarted) + 1;

  void flow_ended(const FlowRecord& flow) override;
  // Adds all flows of `other`.
  void merge(const FlowStatistics& other);

  uint64_t flows() const;
  uint64_t in(FlowRecord::State state) const { return states_[static_cast<size_t>(state)]; }
  const FlowDistribution& all() const { return all_; }
  // By the largest size of the bucket, a power of two, at least 1 KiB.
  const std::map<uint64_t, FlowDistribution>& by_size() const { return by_size_; }

  // Sums over all flows, ended or cut off.
  struct Totals {
    uint64_t bytes = 0, packets = 0, retransmitted = 0, cnps = 0, timeouts = 0;
  };
  const Totals& totals() const { return totals_; }

  static uint64_t bucket_of(uint64_t bytes);

 private:
  std::array<uint64_t, kStates> states_{};
  FlowDistribution all_;
  std::map<uint64_t, FlowDistribution> by_size_;
  Totals totals_;
};

// Word for a state, as in the table and in flows.csv.
std::string_view flow_state_word(FlowRecord::State state);

}  // namespace rocefs
