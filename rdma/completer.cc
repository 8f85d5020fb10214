// The completer: what acknowledgements and deadlines do to the send queue (IBTA 9.7.5, 9.7.8).
#include <algorithm>

#include "rdma/device.h"
#include "rdma/port.h"
#include "rdma/psn.h"
#include "rdma/qp.h"
#include "rdma/requester.h"

namespace rocefs {
namespace {

// AETH syndrome, IBTA table 43.
enum class Syndrome : uint8_t { kAck = 0, kRnr = 1, kReserved = 2, kNak = 3 };
enum NakCode : uint8_t {
  kSequence = 0,
  kInvalidRequest = 1,
  kRemoteAccess = 2,
  kRemoteOperation = 3
};

constexpr uint8_t kForEver = 7;  // rnr_retry, IBTA 11.2.4.2

}  // namespace

void Requester::receive_acknowledge(const wire::Parsed& parsed, TimeNs now) {
  if (qp_.state() != QpState::kRts) return;
  // Data that nobody asked for is a ghost.
  if (parsed.headers.bth.opcode != wire::Opcode::kRcAck) return;
  PortCounters& counters = qp_.port().counters();
  uint64_t psn = unwrap_psn(parsed.headers.bth.psn, unacknowledged_);
  // Outside what is unacknowledged it is old, or a ghost (IBTA 9.7.5.1.4): it says nothing.
  if (psn - unacknowledged_ >= frontier_ - unacknowledged_) return;
  uint8_t syndrome = parsed.headers.aeth.syndrome;
  uint8_t value = syndrome & 0x1f;
  if (syndrome & 0x80) return counters.port_rcv_errors.add();
  switch (static_cast<Syndrome>(syndrome >> 5)) {
    case Syndrome::kAck:
      return take_positive(psn, now);
    case Syndrome::kRnr:
      return take_rnr_nak(psn, value, now);
    case Syndrome::kReserved:
      return counters.port_rcv_errors.add();
    case Syndrome::kNak:
      break;
  }
  if (value == kSequence) return take_sequence_nak(psn, now);
  if (value > kRemoteOperation) return counters.port_rcv_errors.add();
  acknowledge_before(psn, now);
  take_fatal_nak(psn, value);
}

void Requester::take_positive(uint64_t psn, TimeNs now) {
  if (acknowledge_before(psn + 1, now)) qp_.make_requester_ready();
}

// C9-130 and C9-131: a sequence NAK acknowledges all before its PSN and counts as a retry.
void Requester::take_sequence_nak(uint64_t psn, TimeNs now) {
  qp_.port().counters().packet_seq_err.add();
  bool progress = acknowledge_before(psn, now);
  if (qp_.state() != QpState::kRts) return;
  if (!progress) {
    if (retries_left_ == 0) {
      qp_.port().counters().req_transport_retries_exceeded.add();
      return fail_front(WcStatus::kRetryExceeded);
    }
    --retries_left_;
  }
  rewind(psn);
  arm_timer(now);
}

void Requester::take_rnr_nak(uint64_t psn, uint8_t timer, TimeNs now) {
  qp_.port().counters().rnr_nak_retry_err.add();
  acknowledge_before(psn, now);
  if (qp_.state() != QpState::kRts) return;
  if (rnr_retries_left_ == 0) {
    qp_.port().counters().req_rnr_retries_exceeded.add();
    return fail_front(WcStatus::kRnrRetryExceeded);
  }
  if (qp_.attributes().rnr_retry != kForEver) --rnr_retries_left_;
  rewind(psn);
  rnr_waiting_ = true;
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().at(rnr_timer_, now + rnr_timer_ns(timer));
}

void Requester::on_rnr_wait_over(TimeNs) {
  rnr_waiting_ = false;
  qp_.make_requester_ready();
}

void Requester::take_fatal_nak(uint64_t, uint8_t code) {
  if (qp_.state() != QpState::kRts || queue_.empty()) return;
  PortCounters& counters = qp_.port().counters();
  switch (code) {
    case kInvalidRequest:
      counters.req_remote_invalid_request.add();
      return fail_front(WcStatus::kRemoteInvalidRequest);
    case kRemoteAccess:
      counters.req_remote_access_errors.add();
      return fail_front(WcStatus::kRemoteAccessError);
    default:
      return fail_front(WcStatus::kRemoteOperationError);
  }
}

bool Requester::acknowledge_before(uint64_t psn, TimeNs now) {
  if (psn <= unacknowledged_) return false;
  unacknowledged_ = psn;
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
  while (!queue_.empty() && queue_.front().packets > 0 && queue_.front().last_psn() < psn) {
    complete_front(WcStatus::kSuccess);
    if (qp_.state() != QpState::kRts) return true;
  }
  // After going back, more can be acknowledged than was sent again.
  if (next_ < unacknowledged_) rewind(unacknowledged_);
  if (failed_ && cursor_ == queue_.head()) {
    fail_front(queue_.front().failure);
    return true;
  }
  if (unacknowledged_ == frontier_) {
    deadline_ = kNever;
    qp_.scheduler().cancel(timer_);
  } else {
    arm_timer(now);
  }
  return true;
}

// The oldest request ends in failure, and with it the connection.
void Requester::fail_front(WcStatus status) {
  complete_front(status);
  qp_.enter_error();
}

void Requester::complete_front(WcStatus status) {
  const SendRequest& request = queue_.front().request;
  Completion completion;
  completion.wr_id = request.wr_id;
  completion.status = status;
  completion.opcode = request.op == SendOp::kWrite ? WcOpcode::kWrite : WcOpcode::kSend;
  completion.qpn = qp_.number();
  bool report = request.signaled || status != WcStatus::kSuccess;
  if (cursor_ == queue_.head()) ++cursor_;
  queue_.pop();
  --qp_.device().fabric().outstanding().requests;
  if (status == WcStatus::kFlushed) {
    qp_.port().counters().req_cqe_flush_error.add();
  } else if (status != WcStatus::kSuccess) {
    qp_.port().counters().req_cqe_error.add();
  }
  if (report && !qp_.send_cq().push(completion)) qp_.enter_error();
}

void Requester::flush() {
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().cancel(rnr_timer_);
  drop_fetch();
  while (!queue_.empty()) complete_front(WcStatus::kFlushed);
}

// Set anew at each sign of progress. The event stays where it is when the deadline moves away, and
// follows when it fires: acknowledgements are frequent, time-outs rare.
void Requester::arm_timer(TimeNs now) {
  uint8_t timeout = qp_.attributes().timeout & 31;
  if (timeout == 0) return;
  deadline_ = now + (TimeNs{4096} << timeout);
  if (timer_.due() > deadline_) qp_.scheduler().at(timer_, deadline_);
}

// C9-141 and C9-142: the oldest unacknowledged packet is sent again, until the retries are used up.
void Requester::on_timeout(TimeNs now) {
  if (deadline_ == kNever) return;
  if (now < deadline_) return qp_.scheduler().at(timer_, deadline_);
  deadline_ = kNever;
  ++timeouts_;
  qp_.port().counters().local_ack_timeout_err.add();
  if (retries_left_ == 0) {
    qp_.port().counters().req_transport_retries_exceeded.add();
    return fail_front(WcStatus::kRetryExceeded);
  }
  --retries_left_;
  rewind(unacknowledged_);
}

}  // namespace rocefs
