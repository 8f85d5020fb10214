// Requester: the sending half of a reliable connection, and the completer that takes its answers.
// Sans-IO: the port asks for packets, acknowledgements and deadlines come in, completions go out.
// Go-back-N: after a NAK or a time-out everything from the missing PSN on is sent again.
#pragma once

#include <cstdint>

#include "core/scheduler.h"
#include "rdma/memory.h"
#include "rdma/packet.h"
#include "rdma/verbs.h"
#include "rdma/work_queue.h"

namespace rocefs {

class Qp;

class Requester final : public MemoryListener {
 public:
  Requester(Qp& qp, size_t depth);
  ~Requester() override;

  // At the transition to RTS.
  void start(uint32_t psn);
  // ENOMEM when the send queue is full.
  Result<void> post(const SendRequest& request);

  // The next packet that may be sent now; null when there is none, until the QP is made ready.
  Packet* emit(TimeNs now);
  // An acknowledge packet that the port has checked.
  void receive_acknowledge(const wire::Parsed& parsed, TimeNs now);
  // The QP has entered the error state: what is queued ends with kFlushed.
  void flush();

  void memory_done(uint64_t ticket, bool ok) override;
  // Whether memory still works for this QP: it may not be destroyed yet.
  bool memory_pending() const { return fetch_ == Fetch::kPending; }

  uint64_t packets_sent() const { return packets_sent_; }
  uint64_t packets_resent() const { return packets_resent_; }
  uint64_t timeouts() const { return timeouts_; }

 private:
  // PSNs are unwrapped to 64 bits inside; the wire carries the low 24.
  struct Wqe {
    SendRequest request;
    uint64_t first_psn = 0;
    uint64_t packets = 0;  // 0: not begun
    WcStatus failure = WcStatus::kSuccess;
    uint64_t last_psn() const { return first_psn + packets - 1; }
  };
  // A packet whose payload is being read from a client's memory.
  enum class Fetch { kNone, kPending, kReady };

  // requester.cc
  bool may_send() const;
  void begin(Wqe& wqe);
  Packet* build(const Wqe& wqe, TimeNs now);
  bool attach_payload(const Wqe& wqe, Packet* packet, uint64_t offset, uint32_t length);
  void write_headers(const Wqe& wqe, Packet* packet, uint64_t offset, uint32_t length);
  bool wants_acknowledge(const Wqe& wqe);
  Packet* sent(Packet* packet, TimeNs now);
  void rewind(uint64_t psn);
  void drop_fetch();
  void fail_at_cursor(WcStatus status);

  // completer.cc
  void take_positive(uint64_t psn, TimeNs now);
  void take_sequence_nak(uint64_t psn, TimeNs now);
  void take_rnr_nak(uint64_t psn, uint8_t timer, TimeNs now);
  void take_fatal_nak(uint64_t psn, uint8_t code);
  // Acknowledges all PSNs before `psn`; whether that was progress.
  bool acknowledge_before(uint64_t psn, TimeNs now);
  void fail_front(WcStatus status);
  void complete_front(WcStatus status);
  void on_timeout(TimeNs now);
  void on_rnr_wait_over(TimeNs now);
  void arm_timer(TimeNs now);

  Qp& qp_;
  WorkQueue<Wqe> queue_;
  uint64_t unacknowledged_ = 0;  // the oldest PSN without acknowledgement
  uint64_t next_ = 0;            // the PSN to send next
  uint64_t frontier_ = 0;        // one past the highest PSN that was ever sent
  uint64_t cursor_ = 0;          // the queue position that next_ belongs to
  uint32_t since_request_ = 0;   // packets since the last one that asked for an acknowledgement
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  bool rnr_waiting_ = false;
  bool failed_ = false;  // the request at the cursor cannot be sent; it ends when it is the oldest

  Fetch fetch_ = Fetch::kNone;
  Packet* fetched_ = nullptr;
  uint64_t fetched_psn_ = 0;
  bool fetch_stale_ = false;

  Event timer_;
  Event rnr_timer_;
  TimeNs deadline_ = kNever;

  uint64_t packets_sent_ = 0;
  uint64_t packets_resent_ = 0;
  uint64_t timeouts_ = 0;
};

}  // namespace rocefs
