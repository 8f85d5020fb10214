// Requester: when it asks for an acknowledgement.
#include <algorithm>
#include <span>
#include <utility>

#include "rdma/packet/memory.h"
#include "rdma/transport/congestion.h"
#include "rdma/transport/qp.h"
#include "rdma/transport/requester.h"

namespace rocefs {

// Whether there is a limit because of which nobody else would ask for an acknowledgement in time:
// the window closes or a part of it is filled, or packets have become so rare, by the sender's rate
// or by what is before them on the link, that the sender would believe them lost.
bool Requester::wants_early_ack(const Wqe& wqe, TimeNs now) {
  Congestion& congestion = qp_.congestion();
  uint8_t timeout = qp_.attributes().timeout & 31;
  if (congestion.asks_rtt()) return true;
  if (timeout != 0 && now - ack_requested_at_ > TimeNs{1024} << timeout)
    return true;  // a quarter of it
  if (!congestion.has_window()) return false;
  uint64_t mtu = qp_.attributes().path_mtu, window = congestion.window(now);
  uint64_t with_this = octets_in_flight(wqe) + mtu;
  // Whoever reckons with the window takes it for what is under way: acknowledgements come so often
  // that it nearly is.
  uint64_t parts = congestion.reaction() == Reaction::kPcc ? 16 : 2;
  return with_this + mtu > window || (since_ack_request_ + 1) * mtu * parts >= window;
}

// A message end asks for an acknowledgement, unless that of the next is its own too; so does the
// packet that closes the window or has filled half of it, or the sender would wait for ever.
bool Requester::wants_ack(const Wqe& wqe, TimeNs now) {
  if (qp_.type() != QpType::kRc) return false;
  uint32_t window = qp_.attributes().window;
  if (wqe.awaits_response() || next_psn_ == forced_ack_psn_ ||
      next_psn_ + 1 - unacked_psn_ >= window ||
      since_ack_request_ + 1 >= std::max(1u, window / 2) || wants_early_ack(wqe, now)) {
    return true;
  }
  return next_psn_ + 1 == wqe.end_psn() && !is_followed();
}

// Whether the next request's data goes right behind this one's: nothing keeps it back, and its
// bytes are there.
bool Requester::is_followed() {
  if (since_ack_request_ + 1 >= kMaxUnacked || qp_.state() != QpState::kRts) return false;
  if (qp_.congestion().has_window()) return false;  // acknowledgements clock it
  if (!queue_.holds(cursor_ + 1)) return false;
  const Wqe& next = queue_.at(cursor_ + 1);
  const SendRequest& request = next.request;
  std::span<const Sge> parts = request.sges.entries();
  if (next.awaits_response() || next.is_local() || request.malformed || request.fence) return false;
  if (parts.size() != 1 || next.length > kMaxMessage) return false;
  const MemoryRegion* region = qp_.host().memory().allow(parts[0].lkey, qp_.pd(), qp_.number(), 0,
                                                         parts[0].address, parts[0].length);
  return region && region->direct;
}

// What follows will not be sent after all: the last message end that has not asked goes again and
// asks. Whether there was one.
bool Requester::request_ack_again() {
  uint64_t end = std::exchange(last_unacked_end_, kNoPsn);
  if (end == kNoPsn || end < unacked_psn_) return false;
  if (selective_mode_) {  // others that are missing stay in their turn
    schedule_retransmission(end, end + 1);
    return true;
  }
  forced_ack_psn_ = end;
  rewind(end);
  return true;
}

void Requester::drain() {
  bool between = cursor_ == queue_.tail() || !queue_.at(cursor_).begun;
  if (between) request_ack_again();
}

}  // namespace rocefs
