#include "rdma/transport/qp_events.h"

#include <algorithm>

#include "rdma/transport/qp_context.h"

namespace rocefs {

rocefs_qp_event QpEvents::event(rocefs_qp_event_kind kind, const Progress& progress,
                                TimeNs now) const {
  rocefs_qp_event event{};
  event.at_ns = static_cast<uint64_t>(now);
  event.qpn = qp_.number();
  event.generation = signals_ ? signals_->generation : 0;
  event.acked = progress.acked;
  event.sent = progress.sent;
  event.kind = static_cast<uint16_t>(kind);
  return event;
}

// A far end that knows no options answers without: no round trip, no marks, no hops.
void QpEvents::note_response(rocefs_qp_event_kind kind, const Packet& response,
                             const Progress& progress, TimeNs now) {
  rocefs_qp_event told = event(kind, progress, now);
  if (!begun()) begin(progress.acked);
  told.bytes = static_cast<uint32_t>(std::min<uint64_t>(progress.acked - told_, ~0u));
  told_ = progress.acked;
  wire::Telemetry options(response.options());
  if (options.valid() && options.is_answer()) {
    told.rtt_ns = static_cast<uint32_t>(now) - options.timestamp();
    told.marked = options.marked();
    told.way = options.way();
    const size_t hops = std::min<size_t>(options.hops(), ROCEFS_MAX_HOPS);
    told.hops = static_cast<uint8_t>(std::min<size_t>(options.hops() + options.missed(), 255));
    for (size_t i = 0; i < hops; ++i) {
      wire::Telemetry::RawHop hop = options.hop(i);
      told.hop[i] = {hop.queue, hop.sent, hop.time, hop.rate};
    }
  }
  qp_.host().registers().add_event(told);
}

void QpEvents::note_timeout(const Progress& progress, TimeNs now) {
  qp_.host().registers().add_event(event(ROCEFS_QP_TIMEOUT, progress, now));
}

}  // namespace rocefs
