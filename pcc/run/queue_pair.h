// PccQp: a queue pair as seen by PCC: its lines of the register pages, its copy of the parameters,
// its CNPs, round trips and window. Used under its poller's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "core/base/counter.h"
#include "core/base/rng.h"
#include "core/base/time.h"
#include "pcc/api/algorithm.h"
#include "pcc/run/parameter_block.h"
#include "pcc/run/trace.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class PccQp {
 public:
  // Starts counting; an unlimited window becomes ROCEFS_FIRST_WINDOW.
  PccQp(uint32_t qpn, uint32_t generation, const rocefs_qp_signals& signals,
        rocefs_qp_control& control, unsigned slot, const PccAlgorithm& algorithm, uint64_t seed);

  uint32_t qpn() const { return qpn_; }
  uint32_t generation() const { return generation_; }
  unsigned slot() const { return slot_; }
  ParameterBlock& parameters() { return parameters_; }
  Rng& rng() { return rng_; }
  // Switches to another algorithm, or restarts the same one. Keeps the window.
  void apply(unsigned slot, const PccAlgorithm& algorithm);

  uint32_t window() const { return window_; }
  // Counts the call; values below ROCEFS_LEAST_WINDOW are stored as that.
  void set_window(uint32_t window, TimeNs now, PccTrace& trace);

  // Rate in bit/s; 0: none. Set in units of ROCEFS_RATE_UNIT, rounded up.
  uint64_t rate() const { return rate_; }
  void set_rate(uint64_t bits_per_second);
  uint64_t line_rate() const;
  // Events that the algorithm asked for and has not taken.
  std::deque<rocefs_qp_event>& events() { return events_; }
  // False if it took the place of the oldest one.
  bool add_event(const rocefs_qp_event& event);
  bool wants_events() const { return wants_ != 0; }
  // False while a call has nothing to tell: its algorithm lives by events, and there are none.
  bool is_wanted() const { return wants_ == 0 || call_number_ == 0 || !events_.empty(); }

  // CNPs since the last read, clipped to 32 bits.
  uint32_t read_cnps();
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
  TimeNs look_at(TimeNs now) const;

  TimeNs traced_ = 0;  // last traced time; engine time can go back, the trace does not
  // Resets what the trace records of the call in progress.
  void begin_call() {
    call_cnps_ = call_rtt_ns_ = 0;
    call_probes_ = call_takes_ = false;
  }
  // Counts a call that comes late: its time, or that of its oldest event, is an interval past.
  void note_lateness(TimeNs now, TimeNs interval);
  // The call has asked for a round trip.
  bool asked() const { return call_probes_; }
  // The call that ends, but for its time and flags that the caller knows. Counts it.
  rocefs_qp_call note_call();

  TimeNs due = 0;     // the next call
  TimeNs next = 0;    // next look of the poller at this queue pair, at `due` at the latest
  bool fresh = true;  // `due` is not set yet

 private:
  void count_timeout();
  void set_wants(const PccAlgorithm& algorithm);

  const uint32_t qpn_;
  const uint32_t generation_;
  const rocefs_qp_signals& signals_;
  rocefs_qp_control& control_;
  unsigned slot_;
  uint32_t window_;
  uint64_t rate_ = 0;
  uint32_t wants_ = 0;  // rocefs_qp_wants
  std::deque<rocefs_qp_event> events_;
  uint32_t calls_ = 0;
  uint32_t call_cnps_ = 0;
  uint32_t call_rtt_ns_ = 0;
  bool call_probes_ = false;
  uint32_t late_calls_ = 0;
  bool call_takes_ = false;   // a round trip
  uint32_t call_number_ = 0;  // calls since the slot was applied
  bool probing_ = false;
  bool updated_ = false;
  uint32_t probe_;  // number of the latest probe
  uint64_t cnps_seen_;
  uint64_t rtt_ns_ = 0;
  uint64_t rtt_timeouts_ = 0;
  TimeNs asked_ = 0;
  TimeNs budget_ = 0;  // 0: no budget
  TimeNs poll_interval_ = 0;
  ParameterBlock parameters_;
  Rng rng_;
};

}  // namespace rocefs
