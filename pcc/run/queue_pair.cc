#include "pcc/run/queue_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "pcc/api/register_access.h"
#include "pcc/api/rocefs_pcc.h"

namespace rocefs {
namespace {

uint64_t window_word(uint32_t generation, uint32_t window) {
  return uint64_t{generation} << 32 | window;
}

uint32_t wants_of(const PccAlgorithm& algorithm) {
  if (!algorithm.event || !(algorithm.metrics & ROCEFS_PCC_METRIC_EVENTS)) return 0;
  bool hops = algorithm.metrics & ROCEFS_PCC_METRIC_INT;
  return hops ? ROCEFS_WANTS_EVENTS | ROCEFS_WANTS_HOPS : ROCEFS_WANTS_EVENTS;
}

}  // namespace

PccQp::PccQp(uint32_t qpn, uint32_t generation, const rocefs_qp_signals& signals,
             rocefs_qp_control& control, unsigned slot, const PccAlgorithm& algorithm,
             uint64_t seed)
    : qpn_(qpn),
      generation_(generation),
      signals_(signals),
      control_(control),
      slot_(slot),
      window_(ROCEFS_FIRST_WINDOW),
      cnps_seen_(load_word(signals.cnps)),
      parameters_(algorithm.initial),
      probe_(load_word(control.probe)),
      rng_(seed, fmt::format("pcc {} {}", qpn, generation)) {
  uint64_t word = load_word(control.window);
  auto limit = static_cast<uint32_t>(word);
  if (word >> 32 == generation && limit != ROCEFS_NO_WINDOW)
    window_ = std::max(limit, ROCEFS_LEAST_WINDOW);
  store_word(control.slot, slot);
  store_word(control.cnp_baseline, cnps_seen_);
  store_word(control.rtt_timeouts, uint64_t{0});
  store_word(control.calls, uint32_t{0});
  store_word(control.rate, uint64_t{0});
  store_word(control.late_calls, uint32_t{0});
  set_wants(algorithm);
  // The generation in the word binds it to this queue pair.
  announce(control.window, window_word(generation, window_));
}

void PccQp::apply(unsigned slot, const PccAlgorithm& algorithm) {
  change_parameters() = ParameterBlock(algorithm.initial);
  slot_ = slot;
  calls_ = call_number_ = 0;
  cnps_seen_ = load_word(signals_.cnps);
  rtt_ns_ = 0;
  probing_ = updated_ = false;
  next = due;
  set_rate(0);
  set_wants(algorithm);
  store_word(control_.slot, slot);
  store_word(control_.calls, uint32_t{0});
}

void PccQp::set_wants(const PccAlgorithm& algorithm) {
  wants_ = wants_of(algorithm);
  events_ = wants_ ? std::make_unique<std::deque<rocefs_qp_event>>() : nullptr;
  store_word(control_.wants, wants_);
}

void PccQp::set_rate(uint64_t bits_per_second) {
  uint64_t units = bits_per_second / ROCEFS_RATE_UNIT + (bits_per_second % ROCEFS_RATE_UNIT != 0);
  units = clipped(units);
  rate_ = units * ROCEFS_RATE_UNIT;
  store_word(control_.rate, window_word(generation_, static_cast<uint32_t>(units)));
}

// An algorithm that takes few events keeps the newest.
bool PccQp::add_event(const rocefs_qp_event& event) {
  constexpr size_t kMost = 1024;
  bool room = events_->size() < kMost;
  if (!room) drop_first_event();
  events_->push_back(event);
  return room;
}

uint64_t PccQp::line_rate() const {
  return load_word(signals_.line_bps);
}

void PccQp::change_window(uint32_t window, TimeNs now, PccTrace& trace) {
  announce(control_.window, window_word(generation_, window));
  traced_ = std::max(traced_, now);
  trace.add(
      {static_cast<uint64_t>(traced_), qpn_, slot_, window_, window, call_cnps_, call_rtt_ns_});
  window_ = window;
}

void PccQp::count_if_late(TimeNs now, TimeNs interval) {
  TimeNs at = due;
  if (has_events()) at = std::max(due, static_cast<TimeNs>(first_event().at_ns) + interval);
  if (now - at >= interval) store_word(control_.late_calls, ++late_calls_);
}

rocefs_qp_call PccQp::described_call() const {
  rocefs_qp_call call{};
  call.qpn = qpn_;
  call.generation = generation_;
  call.number = call_number_;
  call.slot = slot_;
  call.new_window = window_;
  call.rate_bps = rate_;
  call.kind = ROCEFS_QP_CALL;
  // An answer that arrived after the algorithm looked is new in the next call.
  if (call_takes_) call.flags |= ROCEFS_CALL_RTT;
  if (call_probes_) call.flags |= ROCEFS_CALL_PROBE;
  call.cnps = call_cnps_;
  call.rtt_ns = rtt_ns_;
  call.line_bps = line_rate();
  return call;
}

void PccQp::count_timeout() {
  store_word(control_.rtt_timeouts, ++rtt_timeouts_);
}

// Without a budget a repeated request is no new probe: the next packet answers the old one.
void PccQp::request_probe(TimeNs now, TimeNs budget, TimeNs poll_interval) {
  if (probing_ && budget_ == 0 && budget == 0) return;
  if (probing_) count_timeout();
  probing_ = call_probes_ = true;
  asked_ = now;
  budget_ = budget;
  poll_interval_ = poll_interval;
  // Skips a number that may belong to a probe of an earlier owner.
  ++probe_;
  if (probe_ == load_word(signals_.rtt_probe)) ++probe_;
  announce(control_.probe, probe_);
}

void PccQp::read_answer() {
  if (!probing_ || load_announced(signals_.rtt_probe) != probe_) return;
  probing_ = false;
  uint64_t rtt_ns = load_word(signals_.rtt_ns);
  if (budget_ > 0 && rtt_ns > static_cast<uint64_t>(budget_)) return count_timeout();
  rtt_ns_ = rtt_ns;
  call_rtt_ns_ = clipped(rtt_ns);
  updated_ = true;
}

void PccQp::end_probe(TimeNs now) {
  if (!probing_ || budget_ == 0 || now - asked_ < budget_) return;
  probing_ = false;
  count_timeout();
}

}  // namespace rocefs
