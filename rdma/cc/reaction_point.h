// ReactionPoint: DCQCN's RP of one queue pair, in its rate form as published (Zhu et al., SIGCOMM
// 2015): no slow start, cuts by alpha, increases by a timer and a byte counter. Sans-IO and without
// timers: the timer's events are computed when the rate is needed.
#pragma once

#include <cstdint>

#include "core/base/time.h"
#include "rdma/cc/ecn_knobs.h"

namespace rocefs {

class ReactionPoint {
 public:
  // Forgets all CNPs.
  void reset() { *this = {}; }
  // An unlimited queue pair sends at the link's rate.
  bool limited() const { return limited_; }
  // In bit/s, including Ethernet framing, as links count; only while limited.
  double rate_bps() const { return rate_; }
  double target_bps() const { return target_; }
  double alpha() const { return alpha_; }

  // `line_bps` is the link's rate. Times are monotonic.
  void receive_cnp(const RpParameters& parameters, double line_bps, TimeNs now);
  // Applies the timer's events until `now`.
  void advance(const RpParameters& parameters, double line_bps, TimeNs now);
  // Only while limited, after advance().
  void sent(const RpParameters& parameters, double line_bps, uint64_t octets);

 private:
  void take_periods(const RpParameters& parameters, TimeNs now);
  void decay_alpha(const RpParameters& parameters, TimeNs now);
  void cut(const RpParameters& parameters, TimeNs now);
  void increase(const RpParameters& parameters, double most, uint32_t& stage);

  double rate_ = 0;    // RC
  double target_ = 0;  // RT
  double alpha_ = 0;
  uint64_t octets_ = 0;  // since the byte counter's last event
  TimeNs timer_ = 0;     // when T began
  TimeNs alpha_at_ = 0;  // when alpha_ was last updated
  // T, B and K, by which the events so far were computed; 0: none yet.
  TimeNs timer_period_ = 0, alpha_period_ = 0;
  uint64_t byte_period_ = 0;
  TimeNs cut_at_ = 0;        // while limited
  uint32_t time_stage_ = 0;  // increases since the last cut
  uint32_t byte_stage_ = 0;
  bool limited_ = false;
  bool known_ = false;  // a CNP was received
};

}  // namespace rocefs
