#include "tools/rocefs/sim/flow_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace rocefs {

void FlowDistribution::add(const FlowRecord& flow) {
  fct_ns.add(static_cast<uint64_t>(std::max<TimeNs>(flow.elapsed, 0)));
  slowdown_millionths.add(static_cast<uint64_t>(std::llround(flow.slowdown() / kSlowdownUnit)));
}

void FlowDistribution::merge(const FlowDistribution& other) {
  fct_ns.merge(other.fct_ns);
  slowdown_millionths.merge(other.slowdown_millionths);
}

uint64_t FlowStatistics::bucket_of(uint64_t bytes) {
  return std::bit_ceil(std::clamp<uint64_t>(bytes, 1024, uint64_t{1} << 62));
}

void FlowStatistics::flow_ended(const FlowRecord& flow) {
  ++states_[static_cast<size_t>(flow.state)];
  totals_.bytes += flow.moved;
  totals_.packets += flow.packets;
  totals_.retransmitted += flow.retransmitted;
  totals_.cnps += flow.cnps;
  totals_.timeouts += flow.timeouts;
  if (flow.state != FlowRecord::State::kDone) return;
  all_.add(flow);
  by_size_[bucket_of(flow.bytes)].add(flow);
}

void FlowStatistics::merge(const FlowStatistics& other) {
  for (size_t i = 0; i < kStates; ++i) states_[i] += other.states_[i];
  totals_.bytes += other.totals_.bytes;
  totals_.packets += other.totals_.packets;
  totals_.retransmitted += other.totals_.retransmitted;
  totals_.cnps += other.totals_.cnps;
  totals_.timeouts += other.totals_.timeouts;
  all_.merge(other.all_);
  for (const auto& [size, distribution] : other.by_size_) by_size_[size].merge(distribution);
}

uint64_t FlowStatistics::flows() const {
  return std::accumulate(states_.begin(), states_.end(), uint64_t{0});
}

std::string_view flow_state_word(FlowRecord::State state) {
  constexpr std::string_view kWords[] = {"done",    "lost",    "failed",     "stopped",
                                         "removed", "running", "not started"};
  static_assert(std::size(kWords) == FlowStatistics::kStates);
  return kWords[static_cast<size_t>(state)];
}

}  // namespace rocefs
