// Completer: the handling of responses and deadlines for the send queue of a queue pair. It frees
// the window, places the data of responses, counts retries, chooses the packets to retransmit, and
// completes requests in the order in which they were posted. Sans-IO; core thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/loop/scheduler.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/transport/congestion.h"
#include "rdma/transport/go_back_n.h"
#include "rdma/transport/selective_repeat.h"
#include "rdma/transport/send_window.h"

namespace rocefs {

class Completer final : public MemoryListener {
 public:
  Completer(QpContext& qp, SendWindow& window, SelectiveRepeat& selective, GoBackN& go_back_n,
            Congestion& congestion);

  // Called at the transition to RTS.
  void start();
  // Handles a response that the port has checked (RC).
  void receive_response(PacketPtr&& packet, const wire::Transport& headers, TimeNs now);
  // Notes that a packet of a reliable connection has been sent, whose answer is awaited.
  void packet_sent(TimeNs now) {
    if (deadline_ == kNever) arm_timer(now);
  }
  // Fails the current request, which cannot be sent.
  void fail_current(WcStatus status);
  // Completes finished requests in the order in which they were posted.
  void complete_finished();
  // Ends queued requests with kFlushed. Parts of a response that memory is still taking end first:
  // only then is the buffer the consumer's again.
  void flush();
  // Cancels the timers: no answer is awaited any more.
  void stop();
  void reset();

  void memory_done(uint64_t ticket, bool ok) override;
  // Whether memory is still taking parts of responses.
  bool memory_pending() const { return placing() > 0; }

  uint64_t timeouts() const { return timeouts_; }

 private:
  // A response whose payload memory is taking.
  struct Placement {
    PacketPtr packet;
    uint64_t position = 0;
    uint32_t pending = 0;
    bool failed = false;
  };
  // Maximum of responses that wait for memory. Those beyond are dropped, as in a full NIC.
  static constexpr size_t kMaxPlacements = 4096;

  bool active() const { return qp_.sends() && window_.state != RequesterState::kFailed; }
  size_t placing() const { return placements_.size() - free_placements_.size(); }

  // Acknowledgements and NAKs.
  void take_response(PacketPtr&& packet, const wire::Transport& headers, TimeNs now);
  void receive_told(PacketPtr&& packet, const wire::Transport& headers, TimeNs now);
  QpEvents::Progress progress() const {
    return {window_.octets_acknowledged(), window_.octets_sent()};
  }
  void handle_ack(uint8_t syndrome, uint64_t psn, TimeNs now);
  void handle_sequence_nak(uint64_t psn, TimeNs now);
  void handle_selective_nak(uint64_t psn);
  void handle_rnr_nak(uint64_t psn, uint8_t timer, TimeNs now);
  void handle_fatal_nak(uint64_t psn, uint8_t code, TimeNs now);
  void handle_implied_nak(bool progress);
  void choose_recovery();
  void go_back();
  // Acknowledges all PSNs before `psn`, but not past a READ or atomic whose response is missing.
  // Returns whether that was progress.
  bool acknowledge_before(uint64_t psn, TimeNs now);
  bool advance(TimeNs now);
  void note_progress(TimeNs now);

  // Responses to READs and atomics.
  void handle_response(PacketPtr&& packet, const wire::Transport& headers, uint64_t psn,
                       TimeNs now);
  void handle_out_of_order_response(PacketPtr&& packet, const wire::Transport& headers,
                                    uint64_t psn, TimeNs now);
  bool fits(const SendWqe& wqe, const wire::Transport& headers, uint64_t psn);
  void place(PacketPtr&& packet, const wire::Transport& headers, uint64_t position, uint64_t psn);
  void placed(uint64_t ticket, bool ok);

  // Deadlines and retries.
  bool use_retry();
  void on_timeout(TimeNs now);
  void on_rnr_wait_over(TimeNs now);
  void arm_timer(TimeNs now);

  // Completion.
  void fail_at(uint64_t position, WcStatus status);
  void note_failure(SendWqe& wqe, WcStatus status);
  void complete_all_finished();
  void fail_front(WcStatus status);
  void complete_front(WcStatus status);

  QpContext& qp_;
  SendWindow& window_;
  SelectiveRepeat& selective_;
  GoBackN& go_back_n_;
  Congestion& congestion_;

  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool asked_again_ = false;  // for a READ or atomic, after a NAK or time-out; no progress since
  bool timed_out_ = false;    // no progress since
  TimeNs deadline_ = kNever;
  Event timer_;
  Event rnr_timer_;
  uint64_t timeouts_ = 0;

  std::vector<Placement> placements_;
  std::vector<uint64_t> free_placements_;
};

}  // namespace rocefs
