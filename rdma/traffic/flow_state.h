// FlowState: how far a flow is, as its directory's file `state` shows it.
//
//      a store to traffic/start                        an offer by another mount
//                 |                                                |
//             kLoading: reads file=, opens out=                    |
//                 |                                                |
//      +----------+------------+--------------------+              |
//      | FROM TO  | FROM IP    | accept             |              |
//      |          v            v         its offer  v              |
//      |     kConnecting    kWaiting -----------> kServing <-------+
//      |          | ready      ^                    |   |
//      v          v            +-- cannot be served +   | done
//   kRunning   kRunning                                 v
//      |          | all requests completed: done    kFinishing
//      |          v                                     |
//      |      kReporting                                |
//      |          | arrived                             | all messages checked: arrived
//      +----------+-------------------------------------+
//                 | without out= here                   with out= here: kWriting first
//                 v
//               kDone
//
// ready, done and arrived are messages of rendezvous_message.h. An error in any of the live states
// leads to kFailed, a store to `stop` to kStopped; only kWriting cannot be stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace rocefs {

enum class FlowState : uint8_t {
  kLoading,
  kWaiting,
  kConnecting,
  kRunning,
  kReporting,
  kServing,
  kFinishing,
  kWriting,
  kDone,
  kStopped,
  kFailed,
};

struct FlowStateRow {
  FlowState state;
  std::string_view word;  // in the file; a reason follows `failed`
  bool live;              // the core has a flow or will have one, or its output is being written
};

inline constexpr FlowStateRow kFlowStates[] = {
    {FlowState::kLoading, "running", true},  // without a directory still
    {FlowState::kWaiting, "waiting", true},  {FlowState::kConnecting, "connecting", true},
    {FlowState::kRunning, "running", true},  {FlowState::kReporting, "running", true},
    {FlowState::kServing, "running", true},  {FlowState::kFinishing, "running", true},
    {FlowState::kWriting, "running", true},  {FlowState::kDone, "done", false},
    {FlowState::kStopped, "stopped", false}, {FlowState::kFailed, "failed", false},
};

constexpr const FlowStateRow& row_of(FlowState state) {
  return kFlowStates[static_cast<size_t>(state)];
}
static_assert([] {
  for (size_t i = 0; i < std::size(kFlowStates); ++i) {
    if (kFlowStates[i].state != static_cast<FlowState>(i)) return false;
  }
  return std::size(kFlowStates) == static_cast<size_t>(FlowState::kFailed) + 1;
}());

}  // namespace rocefs
