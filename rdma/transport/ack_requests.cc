#include "rdma/transport/ack_requests.h"

#include <algorithm>
#include <span>

#include "rdma/packet/memory.h"

namespace rocefs {

// A limit may stop the sender before a later packet asks: the window closes or a part of it is
// filled, or packets have become so rare, by the sender's rate or by others on the link, that the
// sender would believe them lost.
bool AckRequests::wanted_early(const SendWqe& wqe, TimeNs now) {
  constexpr TimeNs kQuarterOfTimeout = 1024;  // ns: a quarter of 4.096 us
  uint8_t timeout = qp_.attributes().timeout & 31;
  if (congestion_.asks_rtt()) return true;
  if (timeout != 0 && now - requested_at_ > kQuarterOfTimeout << timeout) return true;
  if (!congestion_.has_window()) return false;
  uint64_t mtu = qp_.attributes().path_mtu, window = congestion_.window(now);
  uint64_t with_this = window_.octets_in_flight(wqe) + mtu;
  // PCC algorithms take the window for the octets in flight: frequent acknowledgements make this
  // nearly true.
  uint64_t parts = congestion_.reaction() == Reaction::kPcc ? 16 : 2;
  return with_this + mtu > window || (since_request_ + 1) * mtu * parts >= window;
}

bool AckRequests::wanted(const SendWqe& wqe, TimeNs now) {
  if (!qp_.reliable()) return false;
  const uint64_t psn = window_.next(), in_flight = psn - window_.unacked();
  if (in_flight == 0) requested_at_ = now;
  const uint64_t window = window_.limit(), unasked = uint64_t{since_request_} + 1;
  const bool half = 2 * unasked + 1 >= window;
  if (half || in_flight + 1 >= window || psn == forced_psn_ || wqe.awaits_response() ||
      wanted_early(wqe, now)) {
    return true;
  }
  return psn + 1 == wqe.end_psn() && !is_followed();
}

// Whether the next request's data follows this one's at once: no limit holds it back, and its
// memory answers at once.
bool AckRequests::is_followed() {
  if (since_request_ + 1 >= kMaxUnasked || qp_.state() != QpState::kRts) return false;
  if (congestion_.has_window()) return false;  // acknowledgements clock the sender
  if (!window_.holds(window_.cursor() + 1)) return false;
  const SendWqe& next = window_.at(window_.cursor() + 1);
  if (!next.plain) return false;
  const Sge& part = next.request.sges.entries()[0];
  const MemoryRegion* region =
      qp_.host().memory().allow(part.lkey, qp_.pd(), qp_.number(), 0, part.address, part.length);
  return region && region->direct;
}

std::optional<uint64_t> AckRequests::take_unasked_end() {
  uint64_t end = std::exchange(last_unacked_end_, kNoPsn);
  if (end == kNoPsn || end < window_.unacked()) return std::nullopt;
  return end;
}

}  // namespace rocefs
