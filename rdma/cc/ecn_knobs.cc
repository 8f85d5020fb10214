#include "rdma/cc/ecn_knobs.h"

#include <cerrno>
#include <utility>

#include "rdma/packet/traffic_class.h"

namespace rocefs {
namespace {

constexpr double kMegabit = 1e6;
constexpr double kFixedPoint = 1024;  // scale of alpha and g

uint64_t number(std::span<const KnobValue> values, size_t index) {
  return std::get<uint64_t>(values[index]);
}

uint8_t mask_from(std::span<const KnobValue> values, size_t first) {
  unsigned mask = 0;
  for (size_t i = 0; i < kPriorities; ++i) mask |= (number(values, first + i) ? 1u : 0u) << i;
  return static_cast<uint8_t>(mask);
}

consteval size_t row(std::string_view path) {
  return knob_index(kEcnKnobs, path);
}

}  // namespace

void EcnKnobs::reset() {
  apply(initial_values(kEcnKnobs));
}

Result<void> EcnKnobs::check(std::span<const KnobValue> values) const {
  uint64_t k = number(values, row("roce_rp/dce_tcp_rtt"));
  uint64_t n = number(values, row("roce_np/min_time_between_cnps"));
  if (k <= n) {
    return errorf(EINVAL, "dce_tcp_rtt, {} us, must be more than min_time_between_cnps, {} us", k,
                  n);
  }
  uint64_t least = number(values, row("roce_rp/rpg_min_rate"));
  uint64_t most = number(values, row("roce_rp/rpg_max_rate"));
  if (most != 0 && least > most) {
    return errorf(EINVAL, "rpg_min_rate, {} Mbit/s, is more than rpg_max_rate, {} Mbit/s", least,
                  most);
  }
  return {};
}

void EcnKnobs::apply(std::span<const KnobValue> values) {
  auto us = [](uint64_t count) { return static_cast<TimeNs>(count) * kMicrosecond; };
  auto mbps = [](uint64_t count) { return static_cast<double>(count) * kMegabit; };
  np_.priorities = mask_from(values, row("roce_np/enable/0"));
  np_.gap = us(number(values, row("roce_np/min_time_between_cnps")));
  np_.processing_delay = static_cast<TimeNs>(number(values, row("roce_np/processing_delay")));
  np_.dscp = static_cast<uint8_t>(number(values, row("roce_np/cnp_dscp")));
  np_.cnp_priority = static_cast<uint8_t>(number(values, row("roce_np/cnp_802p_prio")));
  uint8_t before = std::exchange(rp_.priorities, mask_from(values, row("roce_rp/enable/0")));
  rp_.clamp = number(values, row("roce_rp/clamp_tgt_rate")) != 0;
  rp_.clamp_timed = number(values, row("roce_rp/clamp_tgt_rate_after_time_inc")) != 0;
  rp_.timer = us(number(values, row("roce_rp/rpg_time_reset")));
  rp_.byte_reset = number(values, row("roce_rp/rpg_byte_reset"));
  rp_.threshold = static_cast<uint32_t>(number(values, row("roce_rp/rpg_threshold")));
  rp_.max_bps = mbps(number(values, row("roce_rp/rpg_max_rate")));
  rp_.ai_bps = mbps(number(values, row("roce_rp/rpg_ai_rate")));
  rp_.hai_bps = mbps(number(values, row("roce_rp/rpg_hai_rate")));
  rp_.divisor = static_cast<double>(uint64_t{1} << number(values, row("roce_rp/rpg_gd")));
  rp_.least_cut = static_cast<double>(number(values, row("roce_rp/rpg_min_dec_fac"))) / 100;
  rp_.min_bps = mbps(number(values, row("roce_rp/rpg_min_rate")));
  rp_.first_bps = mbps(number(values, row("roce_rp/rate_to_set_on_first_cnp")));
  rp_.g = static_cast<double>(number(values, row("roce_rp/dce_tcp_g"))) / kFixedPoint;
  rp_.alpha_period = us(number(values, row("roce_rp/dce_tcp_rtt")));
  rp_.reduction_gap = us(number(values, row("roce_rp/rate_reduce_monitor_period")));
  rp_.initial_alpha =
      static_cast<double>(number(values, row("roce_rp/initial_alpha_value"))) / kFixedPoint;
  if (before != rp_.priorities && changed_) changed_();
}

}  // namespace rocefs
