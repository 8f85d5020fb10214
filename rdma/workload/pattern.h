// Pattern: when which flows of a load start, between which hosts and of which size. Open patterns
// follow the clock alone; collectives and schedules wait for their own flows.
//
// The core thread's, once it is made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

struct FlowStart {
  uint32_t from = 0, to = 0;  // places in the load's list of hosts
  uint64_t bytes = 0;
  uint32_t operation = 0;  // of a schedule
};

// A collective's round: an all-reduce, or one permutation.
struct RoundTimes {
  uint64_t round = 0;  // from 0
  TimeNs start = 0, end = 0;
};

// `time` and a delay that is not negative; kNever beyond the clock's range.
constexpr TimeNs later(TimeNs time, TimeNs delay) {
  return delay > kNever - time ? kNever : time + delay;
}

// The product, or UINT64_MAX if it is larger.
constexpr uint64_t saturating_product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

class Pattern {
 public:
  virtual ~Pattern() = default;

  // Time of the next start, or of a moment at which one may become known; kNever if there is none.
  TimeNs due() const { return std::min(starts_.empty() ? kNever : starts_.top().at, wake()); }
  // The next start; nothing if due() was another moment, which is over then. Precondition: due() is
  // not kNever.
  std::optional<FlowStart> take() {
    if (wake() <= (starts_.empty() ? kNever : starts_.top().at)) {
      woken(wake());
      return std::nullopt;
    }
    Start next = starts_.top();
    starts_.pop();
    taken(next.at, next.flow);
    return next.flow;
  }
  // Flows of the whole run, if that is known; else UINT64_MAX.
  virtual uint64_t total() const { return UINT64_MAX; }
  // Whether all starts are known ahead: they follow the clock, and wait for no flow.
  virtual bool follows_clock() const { return false; }
  // Whether flows wait for what their hosts receive: only then flow_arrived() must be told in time.
  virtual bool waits_for_arrivals() const { return false; }
  // The receiver has all octets of a flow, or the flow has ended without: what waits for them
  // follows all the same.
  virtual void flow_arrived(const FlowStart&, TimeNs) {}
  // A flow has ended for its sender, well or not, and had arrived before.
  virtual void flow_ended(const FlowStart&, TimeNs) {}
  // Why the pattern cannot go on though all its flows have ended, with file and line; empty if it
  // can, or is over.
  virtual std::string stuck() const { return {}; }
  // The round that the last call of flow_arrived(), flow_ended() or take() ended, once.
  std::optional<RoundTimes> take_round() { return std::exchange(round_, std::nullopt); }

 protected:
  void plan(TimeNs at, const FlowStart& flow) { starts_.push({at, sequence_++, flow}); }
  // Moment at which the pattern has to look; woken() is called then.
  virtual TimeNs wake() const { return kNever; }
  virtual void woken(TimeNs) {}
  // Plans what follows a start that has been taken.
  virtual void taken(TimeNs, const FlowStart&) {}
  void round_over(const RoundTimes& round) { round_ = round; }

 private:
  struct Start {
    TimeNs at;
    uint64_t sequence;  // starts of one instant keep their order
    FlowStart flow;
    bool operator>(const Start& other) const {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  uint64_t sequence_ = 0;
  std::optional<RoundTimes> round_;
};

}  // namespace rocefs
