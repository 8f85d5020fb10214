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
  if (window_.next() == window_.unacked()) requested_at_ = now;
  uint32_t window = window_.limit();
  if (wqe.awaits_response() || window_.next() == forced_psn_ ||
      window_.next() + 1 - window_.unacked() >= window ||
      since_request_ + 1 >= std::max(1u, window / 2) || wanted_early(wqe, now)) {
    return true;
  }
  return window_.next() + 1 == wqe.end_psn() && !is_followed();
}

// Whether the next request's data follows this one's at once: no limit holds it back, and its
// memory answers at once.
bool AckRequests::is_followed() {
  if (since_request_ + 1 >= kMaxUnasked || qp_.state() != QpState::kRts) return false;
  if (congestion_.has_window()) return false;  // acknowledgements clock the sender
  if (!window_.holds(window_.cursor() + 1)) return false;
  const SendWqe& next = window_.at(window_.cursor() + 1);
  const SendRequest& request = next.request;
  std::span<const Sge> parts = request.sges.entries();
  if (next.awaits_response() || next.is_local() || request.malformed || request.fence) return false;
  if (parts.size() != 1 || next.length > kMaxMessage) return false;
  const MemoryRegion* region = qp_.host().memory().allow(parts[0].lkey, qp_.pd(), qp_.number(), 0,
                                                         parts[0].address, parts[0].length);
  return region && region->direct;
}

std::optional<uint64_t> AckRequests::take_unasked_end() {
  uint64_t end = std::exchange(last_unacked_end_, kNoPsn);
  if (end == kNoPsn || end < window_.unacked()) return std::nullopt;
  return end;
}

}  // namespace rocefs
