// SelectiveRepeat: the requester's side of selective retransmission. Packets that NAKs name are
// sent again alone; responses may come in any order, and missing ones are asked for again. Reliable
// connections only; core thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/loop/scheduler.h"
#include "rdma/transport/arrived_psns.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/prefetch.h"
#include "rdma/transport/psn_ranges.h"
#include "rdma/transport/selective.h"
#include "rdma/transport/send_window.h"

namespace rocefs {

class SelectiveRepeat final : public MemoryListener {
 public:
  // Packet to be sent again or, of a READ, the request for these PSNs of its response.
  struct Retransmission {
    uint64_t psn = 0;
    uint64_t end = 0;
  };

  SelectiveRepeat(QpContext& qp, SendWindow& window) : qp_(qp), window_(window) {}

  // Whether losses are repaired selectively. A far end that has not announced anything may agree:
  // its first packet shows whether it does.
  bool active() const { return active_; }
  // Whether it has been active since the last reset: parts of responses may end on their own.
  bool used() const { return own_ != nullptr; }
  // Notes the announcement of the far end in a packet's BTH.
  void heard(bool sr_capable) { agreement_.heard(sr_capable); }
  // Decides anew. Returns whether all unacknowledged packets must be sent again, because go-back-N
  // does not track packets out of order.
  bool choose();
  // Called at the transition to RTS.
  void start();
  // Drops scheduled retransmissions: all unacknowledged packets are sent again.
  void drop();
  void reset();
  void forget_agreement() { agreement_.forget(); }

  // Notes that the far end has done all before `psn`, while responses may be missing. Only while
  // active.
  void acknowledge(uint64_t psn);
  // Whether the response at this PSN has come, ahead of its turn.
  bool has_arrived(uint64_t psn) const { return own_->arrived.has(psn, window_.unacked()); }
  void mark_arrived(uint64_t psn, TimeNs now);
  // Returns the end of the PSNs that are answered without a gap, and forgets responses before it.
  uint64_t take_answered();
  void note_progress() { own_->probes = 0; }
  // Notes a packet that was answered after all before `psn`: missing responses there were lost or
  // overtaken.
  void note_beyond(uint64_t psn, TimeNs now);

  bool has_retransmissions() const { return own_ && !own_->retransmissions.empty(); }
  // Whether the oldest unanswered packet is about to be sent again.
  bool repeats_oldest() const {
    return own_ && own_->retransmissions.contains(window_.unacked(), window_.unacked() + 1);
  }
  // Schedules retransmission of these PSNs, the lowest first.
  void schedule(uint64_t psn, uint64_t end);
  // Retransmits the oldest unanswered packet after a time-out, which the far end
  // answers even while it drops all behind it, and the newest, which was lost itself or makes the
  // far end name the missing ones. False when two probes have not helped and everything must be
  // sent again: the far end may go back n, or packets may be lost as fast as they are sent.
  bool probe();

  // Next retransmission, without PSNs that have come meanwhile, and the position of its request.
  std::optional<Retransmission> next(uint64_t& position);
  // Notes that it has been sent.
  void sent(const Retransmission& one) { own_->retransmissions.drop_before(one.end); }
  // Fetches the payload of a retransmission: kReady with the packet, kPending, or kFailed.
  Prefetch::State fetch(const SendWqe& wqe, uint64_t position, uint64_t psn, PacketPtr& packet);

  void memory_done(uint64_t ticket, bool ok) override;
  bool memory_pending() const { return own_ && own_->fetch.pending(); }

 private:
  struct Own {
    explicit Own(SelectiveRepeat& repeat);
    PsnRanges retransmissions;
    Prefetch fetch;             // payload of the first retransmission
    ArrivedPsns arrived;        // responses ahead of their turn
    MissingPsns missing;        // missing responses
    uint64_t top = 0;           // PSN up to which missing responses are in `missing`
    uint64_t acknowledged = 0;  // PSN before which the far end has done all
    uint64_t recovery = 0;      // next() at the last time-out
    uint32_t probes = 0;        // probes since there was progress
    Event timer;
  };

  Own& own();
  void note_missing(uint64_t begin, uint64_t end, TimeNs now);
  void request_missing(TimeNs now);
  void retransmit_oldest();
  uint64_t missing_end(uint64_t psn, uint64_t end) const;
  void on_missing_timer(TimeNs now);

  QpContext& qp_;
  SendWindow& window_;
  Agreement agreement_;
  bool active_ = false;
  std::unique_ptr<Own> own_;  // made at first use
};

}  // namespace rocefs
