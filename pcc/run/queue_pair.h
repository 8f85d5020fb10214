// PccQp: a queue pair as PCC sees it: its lines of the register pages, its copy of the parameters,
// and what is known of its CNPs, its round trips and its window. Used under its poller's lock.
#pragma once

#include <cstdint>
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
  // Counting begins: a window without a limit becomes ROCEFS_FIRST_WINDOW.
  PccQp(uint32_t qpn, uint32_t generation, const rocefs_qp_signals& signals,
        rocefs_qp_control& control, unsigned slot, const PccAlgorithm& algorithm, uint64_t seed);

  uint32_t qpn() const { return qpn_; }
  uint32_t generation() const { return generation_; }
  unsigned slot() const { return slot_; }
  ParameterBlock& parameters() { return parameters_; }
  Rng& rng() { return rng_; }
  // Another algorithm, or the same from the start. The window stays.
  void apply(unsigned slot, const PccAlgorithm& algorithm);

  uint32_t window() const { return window_; }
  // Counts; less than ROCEFS_LEAST_WINDOW is stored as that.
  void set_window(uint32_t window, TimeNs now, PccTrace& trace);

  // CNPs since the last reading, clipped.
  uint32_t read_cnps();
  // The latest round trip; 0 while there is none.
  uint64_t rtt_ns() const { return rtt_ns_; }
  // Whether an answer is waited for.
  bool probing() const { return probing_; }
  // With a budget an answer that takes longer counts as none, and the wait ends with it.
  void request_probe(TimeNs now, TimeNs budget, TimeNs poll_interval);
  // Looks for an answer, which is then rtt_ns().
  void read_answer();
  // Whether rtt_ns() is one that has not been told yet; now it has.
  bool updated() const { return updated_; }
  bool take_update() { return std::exchange(updated_, false); }
  // The wait ends if the budget does.
  void end_probe(TimeNs now);
  // When to look again; kNever where no budget was set.
  TimeNs look_at(TimeNs now) const;

  TimeNs traced_ = 0;  // engine time can slip back, the trace does not
  // What the trace says of the call under way.
  void begin_call() { call_cnps_ = call_rtt_ns_ = 0; }

  TimeNs due = 0;     // the next call
  TimeNs next = 0;    // when the poller looks at this queue pair again, at `due` at the latest
  bool fresh = true;  // `due` is not known yet

 private:
  void count_timeout();

  const uint32_t qpn_;
  const uint32_t generation_;
  const rocefs_qp_signals& signals_;
  rocefs_qp_control& control_;
  unsigned slot_;
  uint32_t window_;
  uint32_t calls_ = 0;
  uint32_t call_cnps_ = 0;
  uint32_t call_rtt_ns_ = 0;
  bool probing_ = false;
  bool updated_ = false;
  uint32_t probe_;  // the latest
  uint64_t cnps_seen_;
  uint64_t rtt_ns_ = 0;
  uint64_t rtt_timeouts_ = 0;
  TimeNs asked_ = 0;
  TimeNs budget_ = 0;  // 0: none
  TimeNs poll_interval_ = 0;
  ParameterBlock parameters_;
  Rng rng_;
};

}  // namespace rocefs
