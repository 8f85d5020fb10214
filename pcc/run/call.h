// PccCall: the calls of algorithms on this thread, one after the other, and what the algorithm may
// do in the one in progress: the functions of libmango.h that take no handle, and more for built-in
// algorithms.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/rng.h"
#include "core/base/time.h"
#include "pcc/api/libmango.h"
#include "pcc/api/rocefs_pcc.h"
#include "pcc/run/queue_pair.h"
#include "pcc/run/run.h"

namespace rocefs {

struct PccReads {
  Counter cnps, rtts;
};

class PccCall {
 public:
  // `reads` counts the signals read.
  PccCall(PccRun& run, unsigned poller, PccReads& reads, TimeNs now);
  ~PccCall();
  PccCall(const PccCall&) = delete;
  PccCall& operator=(const PccCall&) = delete;
  // Null outside a call. Safe in a signal handler, as are qpn() and algorithm().
  static PccCall* current();

  uint32_t qpn() const { return qp_->qpn(); }
  unsigned poller() const { return poller_; }
  const char* algorithm() const { return algorithm_->name.c_str(); }

  bool traced() const { return traced_; }
  // Counts the signals that a call reads which need not be made.
  void count_rest() { reads_.cnps.add(); }
  // Calls the algorithm, and traces the call if that is wanted. `due`: the interval has elapsed;
  // false for a call that only reports a round trip.
  void call(PccQp& qp, const PccAlgorithm& algorithm, bool due);

  uint32_t window() const { return qp_->window(); }
  void set_window(uint32_t window) { qp_->set_window(window, now_, run_.trace); }
  uint32_t event_value(mango_pcc_event_e event);
  mango_status_e request(mango_pcc_event_e event);
  bool next_event(rocefs_pcc_event_t& event);
  uint64_t events_lost() const { return run_.events_lost(); }
  uint64_t rate() const { return qp_->rate(); }
  void set_rate(uint64_t bits_per_second) { qp_->set_rate(bits_per_second); }
  uint64_t line_rate() const { return qp_->line_rate(); }
  TimeNs now() const { return now_; }
  // Logs one line, with the prefix.
  void log(mango_log_level_e level, std::string_view text) const;

  // ---- Built-in algorithms only ----

  Rng& rng() { return qp_->rng(); }
  bool due() const { return due_; }
  // True while an earlier probe is unanswered.
  bool probing() const { return qp_->probing(); }
  // Says that the call has left its block as it was. If it has left the window, too, without a
  // signal, further calls are only counted until there is a signal.
  void keep_block() { keeps_ = true; }
  // Sets limits of the probe that this call requests: the poller looks for an answer every
  // `poll_interval`, and calls the algorithm when it has arrived; the probe times out after
  // `budget`.
  void limit_probe(TimeNs budget, TimeNs poll_interval);

 private:
  bool declared(mango_pcc_metric_flags_e metric) const;
  void read_answer();
  void call_event(PccQp& qp, const PccAlgorithm& algorithm);
  void trace(uint32_t old_window);
  void warn(PccWarning warning, std::string_view text) const;

  PccRun& run_;
  const unsigned poller_;
  PccReads& reads_;
  const TimeNs now_;
  const bool traced_;
  // The call in progress.
  PccQp* qp_ = nullptr;
  const PccAlgorithm* algorithm_ = nullptr;
  bool due_ = false;
  bool keeps_ = false;
  TimeNs budget_ = 0;
  TimeNs poll_interval_ = 0;
};

// Scope in which calls of this thread that wait for algorithms are refused.
class InsidePcc {
 public:
  InsidePcc();
  ~InsidePcc();
  InsidePcc(const InsidePcc&) = delete;
  InsidePcc& operator=(const InsidePcc&) = delete;
  // True inside such a scope or an algorithm's call.
  static bool here();
};

}  // namespace rocefs
