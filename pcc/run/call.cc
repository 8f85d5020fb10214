#include "pcc/run/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "pcc/api/register_access.h"
#include "pcc/run/hop_units.h"

namespace rocefs {
namespace {

// Thread-local: functions of libmango.h that an algorithm calls have no argument for their caller.
thread_local PccCall* call_here = nullptr;
thread_local unsigned inside_here = 0;

// By words of the result, each within one that the algorithm has just stored: the CPU would wait
// for a load across two of them.
bool reserved_is_zero(const mango_pcc_result_t& result) {
  const uint8_t* bytes = result._reserved;
  static_assert(offsetof(mango_pcc_result_t, _reserved) == 5 && sizeof result == 32);
  auto word = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, bytes + at, sizeof value);
    return value;
  };
  return (bytes[0] | bytes[1] | bytes[2]) == 0 && word(3) == 0 && (word(11) | word(19)) == 0;
}

}  // namespace

InsidePcc::InsidePcc() {
  ++inside_here;
}
InsidePcc::~InsidePcc() {
  --inside_here;
}
bool InsidePcc::here() {
  return inside_here > 0 || call_here;
}

PccCall::PccCall(PccRun& run, unsigned poller, PccReads& reads, TimeNs now)
    : run_(run),
      poller_(poller),
      reads_(reads),
      now_(now),
      traced_(load_word(run.signals.trace_calls) != 0) {}

PccCall::~PccCall() {
  call_here = nullptr;
}

PccCall* PccCall::current() {
  return call_here;
}

void PccCall::call(PccQp& qp, const PccAlgorithm& algorithm, bool due) {
  qp_ = &qp;
  algorithm_ = &algorithm;
  due_ = due;
  keeps_ = false;
  budget_ = poll_interval_ = 0;
  call_here = this;
  uint32_t old_window = qp.window();
  if (algorithm.event) {
    call_event(qp, algorithm);
  } else {
    algorithm.legacy(qp.parameters().data());
  }
  call_here = nullptr;
  qp.count_call();
  if (keeps_ && qp.window() == old_window) qp.rest();
  if (traced_) trace(old_window);
}

void PccCall::trace(uint32_t old_window) {
  rocefs_call_entry entry{};
  entry.call = qp_->described_call();
  entry.call.at_ns = static_cast<uint64_t>(now_);
  entry.call.old_window = old_window;
  entry.call.active = load_word(run_.signals.active_count);
  if (due_) entry.call.flags |= ROCEFS_CALL_DUE;
  run_.trace.add_call(entry);
}

inline void PccCall::call_event(PccQp& qp, const PccAlgorithm& algorithm) {
  mango_pcc_context_t context{};
  context.current_window = qp.window();
  if (algorithm.metrics & MANGO_PCC_METRIC_CNP) {
    context.cnp_delta = qp.read_cnps();
    reads_.cnps.add();
  }
  if (algorithm.metrics & MANGO_PCC_METRIC_RTT) {
    context.latest_rtt_ns = qp.rtt_ns();
    context.rtt_updated = qp.take_update();
  }
  context.active_qp_count = load_word(run_.signals.active_count);
  mango_pcc_result_t result = algorithm.event(qp.parameters().data(), &context);
  if (result.new_window == 0) {
    warn(PccWarning::kNoWindow, "a new_window of 0 leaves the window as it is");
  } else {
    qp.set_window(result.new_window, now_, run_.trace);
  }
  if (result.request_rtt_probe) request(MANGO_PCC_EVENT_RTT);
  if (!reserved_is_zero(result)) {
    warn(PccWarning::kReserved, "reserved octets of its result are not 0, and ignored");
  }
}

bool PccCall::declared(mango_pcc_metric_flags_e metric) const {
  return !algorithm_->event || (algorithm_->metrics & metric);
}

void PccCall::read_answer() {
  if (!qp_->probing()) return;
  reads_.rtts.add();
  qp_->read_answer();
}

uint32_t PccCall::event_value(mango_pcc_event_e event) {
  switch (event) {
    case MANGO_PCC_EVENT_CNP:
      if (!declared(MANGO_PCC_METRIC_CNP)) return 0;
      reads_.cnps.add();
      return qp_->read_cnps();
    case MANGO_PCC_EVENT_RTT: {
      if (!declared(MANGO_PCC_METRIC_RTT)) return 0;
      read_answer();
      if (!qp_->take_update()) return 0;
      constexpr uint64_t kMaxRtt = std::numeric_limits<uint32_t>::max();
      return static_cast<uint32_t>(std::min(qp_->rtt_ns(), kMaxRtt));
    }
  }
  return 0;
}

mango_status_e PccCall::request(mango_pcc_event_e event) {
  switch (event) {
    case MANGO_PCC_EVENT_CNP:
      return MANGO_STATUS_NOT_SUPPORTED;
    case MANGO_PCC_EVENT_RTT:
      if (!declared(MANGO_PCC_METRIC_RTT)) {
        warn(PccWarning::kUndeclared, "asks for a round trip, but did not declare that metric");
        return MANGO_STATUS_NOT_SUPPORTED;
      }
      read_answer();
      qp_->request_probe(now_, budget_, poll_interval_);
      return MANGO_STATUS_OK;
  }
  return MANGO_STATUS_INVALID_PARAM;
}

// The switch's time has 24 bits: it is the latest such time before the event.
bool PccCall::next_event(rocefs_pcc_event_t& event) {
  if (!qp_->has_events()) return false;
  const rocefs_qp_event& from = qp_->first_event();
  event = {};
  event.at_ns = from.at_ns;
  event.acked_bytes = from.acked;
  event.sent_bytes = from.sent;
  event.type = from.kind;
  event.bytes = from.bytes;
  event.rtt_ns = from.rtt_ns;
  event.marked = from.marked;
  event.way = from.way;
  event.hops = std::min<uint32_t>(from.hops, ROCEFS_PCC_MAX_HOPS);
  event.missed_hops = from.hops - event.hops;
  if (event.missed_hops > 0) {
    warn(PccWarning::kMissedHops,
         fmt::format("telemetry has the first {} of {} switches on a way", event.hops, from.hops));
  }
  for (uint32_t i = 0; i < event.hops; ++i) {
    const rocefs_qp_hop& hop = from.hop[i];
    uint64_t age = (from.at_ns - hop.time_ns) & kHopTimeMask;
    event.hop[i] = {.at_ns = from.at_ns - age,
                    .rate_bps = hop.rate_mbps * kHopRateUnit,
                    .queue_bytes = hop.queue * kHopQueueUnit,
                    .sent_bytes = hop.sent * kHopSentUnit % ROCEFS_PCC_SENT_MODULUS};
  }
  if (traced_) {
    rocefs_call_entry entry{};
    entry.event = from;
    run_.trace.add_call(entry);
  }
  qp_->drop_first_event();
  return true;
}

void PccCall::limit_probe(TimeNs budget, TimeNs poll_interval) {
  budget_ = std::max<TimeNs>(budget, 1);
  poll_interval_ = std::max<TimeNs>(poll_interval, kMicrosecond);
}

void PccCall::log(mango_log_level_e level, std::string_view text) const {
  run_.log(level, fmt::format("[poller {}][QP {}] {}", poller_, qp_->qpn(), text));
}

void PccCall::warn(PccWarning warning, std::string_view text) const {
  if (!run_.first(qp_->slot(), warning)) return;
  std::string name =
      algorithm_->name.empty() ? fmt::format("in slot {}", qp_->slot()) : algorithm_->name;
  log(MANGO_LOG_LEVEL_WARN, fmt::format("algorithm {}: {}", name, text));
}

}  // namespace rocefs
