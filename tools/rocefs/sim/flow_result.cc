#include "tools/rocefs/sim/flow_result.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "tools/rocefs/sim/flow_statistics.h"

namespace rocefs {
namespace {

FlowRecord::State state_of(std::string_view text) {
  using State = FlowRecord::State;
  for (State state :
       {State::kDone, State::kStopped, State::kRemoved, State::kRunning, State::kNotStarted}) {
    if (text == flow_state_word(state)) return state;
  }
  if (text.starts_with(flow_state_word(State::kLost))) return State::kLost;
  return text.starts_with("failed") ? State::kFailed : State::kRunning;
}

// Reason behind `failed: ` or `lost: `.
std::string_view reason_of(std::string_view text) {
  size_t colon = text.find(": ");
  return colon == text.npos ? std::string_view() : text.substr(colon + 2);
}

}  // namespace

double FlowResult::number(const std::string& key) const {
  auto it = result.find(key);
  return it == result.end() ? 0 : std::strtod(it->second.c_str(), nullptr);
}

// A loss makes the flow no faster: it has no completion time.
void FlowResult::note_loss() {
  const auto received = static_cast<uint64_t>(number("received"));
  if (!done() || !is_unreliable(spec.op) || received >= spec.count) return;
  state = fmt::format("lost: {} of {} messages arrived", received, spec.count);
}

FlowRecord FlowResult::record() const {
  FlowRecord record;
  record.name = spec.name;
  record.from = spec.from;
  record.to = spec.to;
  record.op = spec.op;
  record.state = state_of(state);
  record.reason = reason_of(state);
  record.start = start;
  record.elapsed = static_cast<TimeNs>(number("elapsed_ns"));
  record.ideal_ns = ideal_ns;
  record.moved = static_cast<uint64_t>(number("bytes"));
  // A file's octets are those that have moved.
  record.bytes = done() ? record.moved : spec.size * spec.count;
  record.received = static_cast<uint64_t>(number("received"));
  record.packets = static_cast<uint64_t>(number("packets"));
  record.retransmitted = static_cast<uint64_t>(number("retransmitted"));
  record.cnps = static_cast<uint64_t>(number("cnps"));
  record.timeouts = static_cast<uint64_t>(number("timeouts"));
  return record;
}

}  // namespace rocefs
