#include "rdma/cc/reaction_point.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rocefs {
namespace {

// Halving the distance never reaches the limit: from this share on the rate is unlimited.
constexpr double kReleased = 1 - 1.0 / 1024;

double most_of(const RpParameters& parameters, double line_bps) {
  return parameters.max_bps > 0 ? std::min(parameters.max_bps, line_bps) : line_bps;
}

}  // namespace

// A store may shorten T, B or K: what has passed before it counts for one event at most, where the
// new period would find many that never were due.
void ReactionPoint::take_periods(const RpParameters& parameters, TimeNs now) {
  if (std::exchange(timer_period_, parameters.timer) != parameters.timer) {
    timer_ = std::max(timer_, now - parameters.timer);
  }
  if (std::exchange(byte_period_, parameters.byte_reset) != parameters.byte_reset) {
    octets_ = std::min(octets_, parameters.byte_reset);
  }
  if (std::exchange(alpha_period_, parameters.alpha_period) != parameters.alpha_period) {
    alpha_at_ = std::max(alpha_at_, now - parameters.alpha_period);
  }
}

// alpha = (1 - g) alpha for each K without a CNP.
void ReactionPoint::decay_alpha(const RpParameters& parameters, TimeNs now) {
  TimeNs periods = (now - alpha_at_) / parameters.alpha_period;
  if (periods <= 0) return;
  alpha_ *= std::pow(1 - parameters.g, static_cast<double>(periods));
  alpha_at_ += periods * parameters.alpha_period;
}

void ReactionPoint::receive_cnp(const RpParameters& parameters, double line_bps, TimeNs now) {
  advance(parameters, line_bps, now);
  if (!std::exchange(known_, true)) {
    alpha_ = parameters.initial_alpha;
    alpha_at_ = now;
  }
  decay_alpha(parameters, now);
  if (!std::exchange(limited_, true)) {
    target_ = rate_ = most_of(parameters, line_bps);
    time_stage_ = byte_stage_ = 0;
    cut(parameters, now);
    if (parameters.first_bps > 0) rate_ = std::min(parameters.first_bps, target_);
  } else if (now - cut_at_ >= parameters.reduction_gap) {
    cut(parameters, now);
  }
  alpha_ = (1 - parameters.g) * alpha_ + parameters.g;
  alpha_at_ = now;
}

// RT = RC, RC *= 1 - alpha/2; restarts timer and byte counter.
void ReactionPoint::cut(const RpParameters& parameters, TimeNs now) {
  bool increased = byte_stage_ > 0 || (parameters.clamp_timed && time_stage_ > 0);
  if (parameters.clamp || increased) target_ = rate_;
  double share = std::max(1 - alpha_ / parameters.divisor, parameters.least_cut);
  rate_ = std::max(rate_ * share, std::min(rate_, parameters.min_bps));
  time_stage_ = byte_stage_ = 0;
  octets_ = 0;
  timer_ = cut_at_ = now;
}

void ReactionPoint::advance(const RpParameters& parameters, double line_bps, TimeNs now) {
  take_periods(parameters, now);
  while (limited_ && now - timer_ >= parameters.timer) {
    timer_ += parameters.timer;
    increase(parameters, most_of(parameters, line_bps), time_stage_);
  }
}

void ReactionPoint::sent(const RpParameters& parameters, double line_bps, uint64_t octets) {
  if (parameters.byte_reset == 0) return;
  octets_ += octets;
  while (limited_ && octets_ >= parameters.byte_reset) {
    octets_ -= parameters.byte_reset;
    increase(parameters, most_of(parameters, line_bps), byte_stage_);
  }
}

// F rounds of fast recovery, then additive; hyper once both have counted past F.
void ReactionPoint::increase(const RpParameters& parameters, double most, uint32_t& stage) {
  uint32_t higher = std::max(time_stage_, byte_stage_);
  uint32_t lower = std::min(time_stage_, byte_stage_);
  if (higher >= parameters.threshold) {
    target_ += lower > parameters.threshold ? parameters.hai_bps : parameters.ai_bps;
  }
  ++stage;
  target_ = std::min(target_, most);
  rate_ = std::min((rate_ + target_) / 2, most);
  if (rate_ >= most * kReleased) limited_ = false;
}

}  // namespace rocefs
