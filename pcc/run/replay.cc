#include "pcc/run/replay.h"

#include <cerrno>
#include <utility>

namespace rocefs {
namespace {

bool has_line(uint32_t qpn) {
  return qpn >= ROCEFS_FIRST_QPN && qpn - ROCEFS_FIRST_QPN < ROCEFS_MAX_QPS;
}

Error no_such_qp(uint32_t qpn) {
  return errorf(EINVAL, "there is no QP {}", qpn);
}

}  // namespace

Result<void> PccReplay::add(const rocefs_qp_event& event) {
  if (!has_line(event.qpn)) return no_such_qp(event.qpn);
  if (pending_ == kMaxPending) return errorf(ENOBUFS, "{} events and no call", pending_);
  qps_[event.qpn].pending.push_back(event);
  ++pending_;
  return {};
}

Result<PccReplay::Step> PccReplay::add(const rocefs_qp_call& call) {
  if (!has_line(call.qpn)) return no_such_qp(call.qpn);
  Qp& qp = qps_[call.qpn];
  const std::vector<rocefs_qp_event> events = std::exchange(qp.pending, {});
  pending_ -= events.size();
  const bool first = call.number == 1;
  const bool same = qp.generation == call.generation && !first;
  const uint32_t expected = same ? qp.number + 1 : 1;
  if (!same) qp.goes_on = qp.left_out = false;
  qp.generation = call.generation;
  qp.number = call.number;
  if (!first && !(qp.goes_on && call.number == expected)) {
    qp.goes_on = false;
    return Step{false, std::exchange(qp.left_out, true) ? 0 : expected, {}};
  }
  qp.goes_on = true;
  if (first) ++begun_;
  PccOffline::Input input{.at = static_cast<TimeNs>(call.at_ns),
                          .qpn = call.qpn,
                          .generation = call.generation,
                          .first = first,
                          .window = call.old_window,
                          .due = (call.flags & ROCEFS_CALL_DUE) != 0,
                          .cnps = call.cnps,
                          .rtt_ns = call.rtt_ns,
                          .rtt_new = (call.flags & ROCEFS_CALL_RTT) != 0,
                          .active = call.active,
                          .line_bps = call.line_bps,
                          .events = events};
  Result<PccOffline::Decision> decision = offline_.call(input);
  if (!decision) return decision.error();
  ++calls_;
  return Step{true, 0, *decision};
}

}  // namespace rocefs
