// PccQp: a queue pair as seen by PCC: its lines of the register pages, its copy of the parameters,
// its CNPs, round trips and window. Used under its poller's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/counter.h"
#include "core/base/rng.h"
#include "core/base/time.h"
#include "pcc/api/algorithm.h"
#include "pcc/api/register_access.h"
#include "pcc/run/parameter_block.h"
#include "pcc/run/trace.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class alignas(64) PccQp {
 public:
  // Starts counting; an unlimited window becomes ROCEFS_FIRST_WINDOW.
  PccQp(uint32_t qpn, uint32_t generation, const rocefs_qp_signals& signals,
        rocefs_qp_control& control, unsigned slot, const PccAlgorithm& algorithm, uint64_t seed);

  uint32_t qpn() const { return qpn_; }
  uint32_t generation() const { return generation_; }
  unsigned slot() const { return slot_; }
  ParameterBlock& parameters() { return parameters_; }
  // The same for a change from outside of a call, which ends a rest.
  ParameterBlock& change_parameters() {
    rests_ = false;
    return parameters_;
  }
  Rng& rng() { return rng_; }
  // Switches to another algorithm, or restarts the same one. Keeps the window.
  void apply(unsigned slot, const PccAlgorithm& algorithm);

  uint32_t window() const { return window_; }
  // Counts the call; values below ROCEFS_LEAST_WINDOW are stored as that.
  void set_window(uint32_t window, TimeNs now, PccTrace& trace) {
    window = std::clamp(window, ROCEFS_LEAST_WINDOW, ROCEFS_NO_WINDOW - 1);
    store_word(control_.calls, ++calls_);
    if (window != window_) change_window(window, now, trace);
  }

  // Rate in bit/s; 0: none. Set in units of ROCEFS_RATE_UNIT, rounded up.
  uint64_t rate() const { return rate_; }
  void set_rate(uint64_t bits_per_second);
  uint64_t line_rate() const;
  // Events that the algorithm asked for and has not taken, oldest first.
  bool has_events() const { return events_ && !events_->empty(); }
  const rocefs_qp_event& first_event() const { return events_->front(); }
  void drop_first_event() { events_->pop_front(); }
  // False if it took the place of the oldest one.
  bool add_event(const rocefs_qp_event& event);
  bool wants_events() const { return wants_ != 0; }
  // False while a call has nothing to tell: its algorithm lives by events, and there are none.
  bool is_wanted() const { return wants_ == 0 || call_number_ == 0 || has_events(); }

  // CNPs since the last read, clipped to 32 bits.
  uint32_t read_cnps() {
    uint64_t cnps = load_word(signals_.cnps);
    uint32_t delta = clipped(cnps - cnps_seen_);
    cnps_seen_ = cnps;
    call_cnps_ = clipped(uint64_t{call_cnps_} + delta);
    return delta;
  }
  // Latest round trip; 0 before the first.
  uint64_t rtt_ns() const { return rtt_ns_; }
  // True while a probe is unanswered.
  bool probing() const { return probing_; }
  // With a budget, an answer that takes longer is ignored, and the wait ends at the budget.
  void request_probe(TimeNs now, TimeNs budget, TimeNs poll_interval);
  // Reads an answer, if one arrived, into rtt_ns().
  void read_answer();
  // True if rtt_ns() was not reported yet; take_update() marks it as reported.
  bool updated() const { return updated_; }
  bool take_update() {
    call_takes_ |= updated_;
    return std::exchange(updated_, false);
  }
  // Ends the wait if the budget has elapsed.
  void end_probe(TimeNs now);
  // Time of the next look for an answer; kNever without a budget.
  TimeNs look_at(TimeNs now) const {
    if (!probing_ || budget_ == 0) return kNever;
    return std::min(now + poll_interval_, std::max(asked_ + budget_, now + 1));
  }

  // Resets what is recorded of the call in progress.
  void begin_call() {
    call_cnps_ = call_rtt_ns_ = 0;
    call_probes_ = call_takes_ = rests_ = false;
  }
  // Counts a call that comes late: its time, or that of its oldest event, is an interval past.
  void note_lateness(TimeNs now, TimeNs interval) {
    if (now - due >= interval && call_number_ > 0) count_if_late(now, interval);
  }
  // The call has asked for a round trip.
  bool asked() const { return call_probes_; }
  void count_call() { ++call_number_; }
  // The call had no signal, and neither it nor those that follow without one change a thing.
  void rest() { rests_ = call_cnps_ == 0 && !call_takes_ && !call_probes_ && !has_events(); }
  // True if a call now would do what the one before did: nothing.
  bool rests() const { return rests_ && load_word(signals_.cnps) == cnps_seen_; }
  // Counts a call that need not be made.
  void count_rest() {
    store_word(control_.calls, ++calls_);
    ++call_number_;
  }
  // The call counted last, but for its time and flags that the caller knows.
  rocefs_qp_call described_call() const;

  TimeNs next = 0;     // next look of the poller at this queue pair, at `due` at the latest
  TimeNs due = 0;      // the next call
  uint32_t place = 0;  // among those of its poller
  bool fresh = true;   // `due` is not set yet

 private:
  static uint32_t clipped(uint64_t value) {
    return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
  }
  void change_window(uint32_t window, TimeNs now, PccTrace& trace);
  void count_if_late(TimeNs now, TimeNs interval);
  void count_timeout();
  void set_wants(const PccAlgorithm& algorithm);

  // Two cache lines, with the members above, hold all that a call needs most.
  const uint32_t qpn_;
  const uint32_t generation_;
  const rocefs_qp_signals& signals_;
  rocefs_qp_control& control_;
  unsigned slot_;
  uint32_t window_;
  uint32_t wants_ = 0;  // rocefs_qp_wants
  uint32_t calls_ = 0;
  uint32_t call_number_ = 0;  // calls since the slot was applied
  uint32_t call_cnps_ = 0;
  uint32_t call_rtt_ns_ = 0;
  bool call_probes_ = false;
  bool call_takes_ = false;  // a round trip
  bool rests_ = false;
  bool probing_ = false;
  bool updated_ = false;
  uint64_t cnps_seen_;
  ParameterBlock parameters_;
  std::unique_ptr<std::deque<rocefs_qp_event>> events_;  // null unless it wants them

  uint64_t rate_ = 0;
  uint32_t late_calls_ = 0;
  uint32_t probe_;  // number of the latest probe
  uint64_t rtt_ns_ = 0;
  uint64_t rtt_timeouts_ = 0;
  TimeNs asked_ = 0;
  TimeNs budget_ = 0;  // 0: no budget
  TimeNs poll_interval_ = 0;
  TimeNs traced_ = 0;  // last traced time; engine time can go back, the trace does not
  Rng rng_;
};

}  // namespace rocefs
