// SelectiveRepeat: the requester's side of selective retransmission: packets that NAKs name are
// sent again alone, responses may come in any order, and those that are missing are asked for
// again. Reliable connections only; core thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/loop/scheduler.h"
#include "rdma/transport/missing_psns.h"
#include "rdma/transport/prefetch.h"
#include "rdma/transport/selective.h"
#include "rdma/transport/send_window.h"

namespace rocefs {

class SelectiveRepeat final : public MemoryListener {
 public:
  // One packet to be sent again or, of a READ, the request for these PSNs of its response.
  struct Retransmission {
    uint64_t psn = 0;
    uint64_t end = 0;
  };

  SelectiveRepeat(QpContext& qp, SendWindow& window) : qp_(qp), window_(window) {}

  // Whether losses are mended selectively. Until the far end has said anything it may agree: what
  // it says then shows whether it does.
  bool active() const { return active_; }
  // Whether it has been active since the last reset: parts of responses may end on their own.
  bool used() const { return own_ != nullptr; }
  // The far end has announced this in the BTH of a packet.
  void heard(uint8_t bth_reserved6) { agreement_.heard(bth_reserved6); }
  // Decides anew. True if all that is unacknowledged must be sent again, because go-back-N knows
  // nothing of what has come out of order.
  bool choose();
  // At the transition to RTS.
  void start();
  // Forgets what was to be sent again: everything that is unacknowledged is.
  void drop();
  void reset();
  void forget_agreement() { agreement_.forget(); }

  // While active: the far end has done all before `psn`, but responses may be missing.
  void acknowledge(uint64_t psn);
  // Whether the response at this PSN has come, ahead of its turn.
  bool has_arrived(uint64_t psn) const {
    return psn - window_.unacked() < kMaxOutOfOrder && own_->has(psn);
  }
  void mark_arrived(uint64_t psn, TimeNs now);
  // One past the PSNs that are answered without a gap. Responses up to there are forgotten.
  uint64_t take_answered();
  void note_progress() { own_->probes = 0; }
  // A packet has come that was answered after all before `psn`: responses that are missing there
  // were lost or overtaken.
  void note_beyond(uint64_t psn, TimeNs now);

  bool has_retransmissions() const { return own_ && !own_->retransmissions.empty(); }
  bool is_scheduled(uint64_t psn, uint64_t end);
  void schedule(uint64_t psn, uint64_t end);
  // A NAK or a hole asks for this PSN. Whether that uses a retry: when the oldest packet is asked
  // for again that was sent again for the asking; one for as long as the ACK timeout, since the far
  // end asks by its own, shorter limits.
  bool uses_retry(uint64_t psn, TimeNs now);
  // After a time-out the newest packet goes again: if the end of what was sent is lost, that is it;
  // else it makes the far end say what is missing. False when everything must go: two probes have
  // not helped, the far end may go back n, and packets may be lost as fast as they are sent.
  bool probe();

  // The next one, without what has come meanwhile, and the position of its request; null if there
  // is none.
  const Retransmission* next(uint64_t& position);
  void pop() { own_->retransmissions.pop(); }
  // Fetches the payload of that packet: kReady with the packet, kPending, or kFailed.
  Prefetch::State fetch(const SendWqe& wqe, uint64_t position, uint64_t psn, Packet*& packet);

  void memory_done(uint64_t ticket, bool ok) override;
  bool memory_pending() const { return own_ && own_->fetch.pending(); }

 private:
  static constexpr size_t kMaxRetransmissions = 1024;

  struct Own {
    explicit Own(SelectiveRepeat& repeat);
    WorkQueue<Retransmission> retransmissions;
    Prefetch fetch;                                       // of the first of them
    std::array<uint64_t, kMaxOutOfOrder / 64> arrived{};  // responses ahead of their turn, by PSN
    MissingPsns missing;                                  // in responses
    uint64_t top = 0;           // missing responses before it are in `missing`
    uint64_t acknowledged = 0;  // the far end has done all before it
    uint64_t recovery = 0;      // next() at the last time-out
    uint64_t asked_for = 0;  // the PSN that a NAK or a hole asked for last, when it was the oldest
    TimeNs retry_due = 0;    // when its being asked for again uses a further retry
    uint32_t probes = 0;     // since there was progress
    Event timer;

    bool has(uint64_t psn) const { return arrived[psn % kMaxOutOfOrder / 64] >> psn % 64 & 1; }
    void flip(uint64_t psn) { arrived[psn % kMaxOutOfOrder / 64] ^= uint64_t{1} << psn % 64; }
  };

  Own& own();
  bool trim(Retransmission& next, uint64_t& position);
  void note_missing(uint64_t begin, uint64_t end, TimeNs now);
  void request_missing(TimeNs now);
  void retransmit_oldest();
  void on_missing_timer(TimeNs now);

  QpContext& qp_;
  SendWindow& window_;
  Agreement agreement_;
  bool active_ = false;
  std::unique_ptr<Own> own_;  // made when it is first needed
};

}  // namespace rocefs
