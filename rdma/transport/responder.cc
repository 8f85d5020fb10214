#include "rdma/transport/responder.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "rdma/transport/qp_context.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

// Maximum of packets that wait for memory; those beyond are dropped, as in a full NIC.
constexpr size_t kMaxSteps = 4096;

bool is_fatal(uint8_t nak) {
  return aeth::kind_of(nak) == aeth::Kind::kNak && nak != aeth::kNakSequence;
}

}  // namespace

Responder::Responder(QpContext& qp, Congestion& congestion)
    : qp_(qp), steps_(kMaxSteps), resources_(qp, congestion) {}

Responder::~Responder() {
  assert(pending_steps_ == 0);
}

void Responder::start(uint32_t psn) {
  expected_psn_ = kPsnBase + psn;
  acknowledged_ = expected_psn_ - 1;
  agreement_.forget();
  drop_out_of_order();
}

void Responder::receive(PacketPtr&& packet, const wire::Transport& headers) {
  if (!qp_.receives_packets() || steps_.full() || doomed_) return;
  if (qp_.state() == QpState::kRtr && qp_.type() != QpType::kUd) qp_.raise(QpEvent::kEstablished);
  switch (qp_.type()) {
    case QpType::kRc:
    case QpType::kXrcReceive:
      return receive_reliable(std::move(packet), headers);
    case QpType::kUc:
      return receive_connected(std::move(packet), headers);
    case QpType::kUd:
      return receive_datagram(std::move(packet), headers);
    case QpType::kXrcSend:
      return;  // takes no requests
  }
}

// Takes packets in PSN order: one behind the expected PSN is a duplicate, one ahead of it shows a
// gap.
void Responder::receive_reliable(PacketPtr&& packet, const wire::Transport& headers) {
  agreement_.heard(headers.sr_capable());
  echo_.note(*packet);
  uint64_t psn = unwrap_psn(headers.psn(), expected_psn_);
  if (psn > expected_psn_) return handle_gap(std::move(packet), headers, psn);
  if (psn < expected_psn_) return handle_duplicate(headers, psn);
  if (take_predicted(*packet, headers)) return;
  if (ooo_) ooo_->missing.count_arrival();
  handle_expected(std::move(packet), headers);
  if (ooo_) deliver_in_order();
}

void Responder::handle_expected(PacketPtr&& packet, const wire::Transport& headers) {
  state_ = ResponderState::kInOrder;
  Step step;
  step.psn = expected_psn_;
  step.acknowledge = headers.ack_req();
  if (check_request(*packet, headers, step) == Verdict::kAccept) {
    if (ooo_) note_received(step.psns);
    expected_psn_ += step.psns;
    return accept(std::move(packet), headers, step);
  }
  state_ = ResponderState::kRefused;
  doomed_ = is_fatal(step.nak);
  drop_out_of_order();  // the far end goes back, or fails
  add_step(step);
}

// An unreliable connection drops a message of which a packet is missing, and with it all packets up
// to the next first one. No packet is executed twice or late. There are no answers.
void Responder::receive_connected(PacketPtr&& packet, const wire::Transport& headers) {
  const wire::OpcodeInfo& info = headers.info();
  uint64_t psn = unwrap_psn(headers.psn(), expected_psn_);
  if (psn < expected_psn_) {
    return qp_.port().counters().duplicate_request.add();
  }
  if (psn > expected_psn_) qp_.port().counters().out_of_sequence.add();
  bool begins = info.first || info.only;
  if (psn != expected_psn_ || begins) abandon_message();
  expected_psn_ = psn + 1;
  Step step;
  step.psn = psn;
  Verdict verdict =
      begins || message_.active ? check_request(*packet, headers, step) : Verdict::kDrop;
  if (verdict == Verdict::kAccept) return accept(std::move(packet), headers, step);
  if (verdict == Verdict::kRefuse) add_step(step);
  abandon_message();
}

void Responder::receive_datagram(PacketPtr&& packet, const wire::Transport& headers) {
  Step step;
  if (headers.deth().qkey != qp_.attributes().qkey)
    return qp_.port().counters().rx_unknown_qp.add();
  step.completion.source_qpn = headers.deth().src_qpn;
  bool ipv6 = packet->header[0] >> 4 == 6;
  step.completion.grh = ipv6 ? Grh::kIpv6 : Grh::kIpv4;
  Verdict verdict = check_request(*packet, headers, step);
  if (verdict == Verdict::kAccept) {
    place_grh(*packet, step);
    return accept(std::move(packet), headers, step);
  }
  if (verdict == Verdict::kRefuse) add_step(step);
  abandon_message();
}

void Responder::accept(PacketPtr&& packet, const wire::Transport& headers, Step& step) {
  const wire::OpcodeInfo& info = headers.info();
  if (step.action == Action::kNone) {
    place(*packet, step);
    if (info.last || info.only) finish_message(headers, info, step);
  }
  if (step.pending > 0) {
    step.packet = std::move(packet);
    ++pending_steps_;
  }
  add_step(step);
}

// A duplicate is not executed again: a SEND or WRITE is acknowledged again, a READ or atomic
// answered again.
void Responder::handle_duplicate(const wire::Transport& headers, uint64_t psn) {
  const wire::OpcodeInfo& info = headers.info();
  qp_.port().counters().duplicate_request.add();
  if (info.is_atomic) return resources_.replay(psn, psn + 1);
  if (info.has_reth && !info.has_payload) {
    return resources_.replay(psn, psn + psns_of(headers.reth().dma_len, qp_.attributes().path_mtu));
  }
  acknowledge_due_ = true;
  qp_.make_acknowledge_ready();
}

// A gap gets one NAK, and packets behind it are dropped, unless one NAK for each missing packet is
// agreed and has not been in vain. Packets behind a refused one are no gap: the far end sends them
// again (IBTA 9.7.5.2.8).
void Responder::handle_gap(PacketPtr&& packet, const wire::Transport& headers, uint64_t psn) {
  if (state_ == ResponderState::kRefused) return;
  qp_.note_gap(psn - expected_psn_);
  qp_.port().counters().out_of_sequence.add();
  if (state_ == ResponderState::kGap) return;  // the NAK has been sent
  if (selective()) return buffer_out_of_order(std::move(packet), headers, psn);
  request_all();
}

// Asks for the expected PSN and all behind it.
void Responder::request_all() {
  drop_out_of_order();
  state_ = ResponderState::kGap;
  Step step;
  step.psn = expected_psn_;
  step.nak = aeth::kNakSequence;
  add_step(step);
}

// Drops the current message, which is lost; its receive request serves the next one.
void Responder::abandon_message() {
  if (message_.active && !message_.write) {
    reusable_receive_.emplace();
    reusable_receive_->wr_id = message_.receive_id;
    reusable_receive_->sges = message_.target;
    reusable_after_ = message_.received > 0 ? steps_.tail() : steps_.head();
  }
  message_.active = false;
}

void Responder::memory_done(uint64_t ticket, bool ok) {
  Step& step = steps_.at(ticket);
  step.failed |= !ok;
  if (--step.pending == 0) {
    --pending_steps_;
    step.packet.reset();
    complete_steps();
    if (ooo_) deliver_in_order();
  }
  qp_.memory_settled();
}

void Responder::add_step(Step& step) {
  // A step that need not wait is not queued.
  if (steps_.empty() && step.pending == 0 && step.action != Action::kAtomic)
    return complete_step(step);
  steps_.push(std::move(step));
  complete_steps();
}

void Responder::complete_steps() {
  while (!steps_.empty() && steps_.front().pending == 0) {
    if (!execute(steps_.front())) return;
    Step step = std::move(steps_.front());
    steps_.pop();
    complete_step(step);
  }
  if (steps_.empty() && qp_.state() == QpState::kError) flush();
}

// Executes an atomic: all steps before it are done. False while memory works on it.
bool Responder::execute(Step& step) {
  if (step.action != Action::kAtomic || step.executed || step.forgotten) return true;
  if (!qp_.receives_packets()) return true;
  step.executed = true;
  ResponderResources::Resource& resource = resources_.resource(step.slot);
  const MemoryRegion* region = qp_.host().memory().allow(
      resource.rkey, resource.pd, qp_.number(), resource.access, resource.address, resource.length);
  if (!region) {
    step.failed = true;
    return true;
  }
  switch (region->memory->atomic(region->offset_of(resource.address), resource.operation, original_,
                                 *this, steps_.head())) {
    case Memory::Outcome::kDone:
      break;
    case Memory::Outcome::kFailed:
      step.failed = true;
      break;
    case Memory::Outcome::kPending:
      step.pending = 1;
      ++pending_steps_;
      return false;
  }
  return true;
}

// Completes a step: its payload, and everything before it, is placed, so that it may be
// acknowledged.
void Responder::complete_step(Step& step) {
  if (step.forgotten) {
    if (step.consumes_receive && step.completion.srqn != 0) report_flushed(step.completion);
    return;
  }
  message_bad_ = step.failed || (message_bad_ && !step.begins);
  step.failed |= message_bad_ && step.message_end;
  settle(step);
  bool reliable = qp_.reliable();
  if (step.nak && reliable) {
    nak_due_ = {step.nak, step.psn};
  } else if (qp_.state() != QpState::kError && !step.unanswered) {
    if (step.message_end) count_message();
    if (step.action == Action::kNone) {
      acknowledged_ = step.psn;
      acknowledge_due_ |= step.acknowledge && reliable;
    } else {
      resources_.resource(step.slot).messages = messages_;
      if (step.action == Action::kAtomic) resources_.resource(step.slot).original = original_;
      resources_.answer(step.slot);
    }
  }
  bool fatal = reliable && is_fatal(step.nak);
  if (step.consumes_receive) {
    if (step.completion.status == WcStatus::kFlushed) {
      qp_.port().counters().resp_cqe_flush_error.add();
    } else if (step.completion.status != WcStatus::kSuccess) {
      qp_.port().counters().resp_cqe_error.add();
      fatal = true;
    }
    CompletionSink* cq = receive_cq(step.completion);
    if (cq && !cq->push(step.completion, step.solicited)) {
      qp_.raise(QpEvent::kFatal);
      fatal = true;
    }
  } else if (fatal) {
    bool access = step.nak == aeth::kNakRemoteAccess;
    qp_.raise(access ? QpEvent::kAccessViolation : QpEvent::kInvalidRequest);
  }
  if (nak_due_ || acknowledge_due_) qp_.make_acknowledge_ready();
  if (fatal) qp_.enter_error();
}

// Turns an error of the queue pair or of memory into the step's NAK and completion status. A failed
// invalidation has no NAK, nor an acknowledgement (IBTA 9.9.6.3, class J).
void Responder::settle(Step& step) {
  if (qp_.state() == QpState::kError) {
    if (step.consumes_receive) step.completion.status = WcStatus::kFlushed;
    step.nak = 0;
    return;
  }
  if (step.failed) {
    bool ours = !step.write && step.action == Action::kNone;  // a receive's memory or L_Key
    step.nak = ours ? aeth::kNakRemoteOperation : aeth::kNakRemoteAccess;
    if (!ours) qp_.port().counters().resp_remote_access_errors.add();
    if (step.consumes_receive) {
      step.completion.status =
          step.write ? WcStatus::kLocalAccessError : WcStatus::kLocalProtectionError;
    }
    return;
  }
  if (!step.invalidates || step.nak) return;
  if (qp_.host().memory().invalidate(step.completion.immediate, qp_.number())) return;
  step.unanswered = true;
  qp_.port().counters().resp_remote_access_errors.add();
  step.completion.status = WcStatus::kRemoteInvalidRequest;
}

// Responses to READs and atomics go before acknowledgements: they acknowledge all PSNs ahead of
// them. NAKs that acknowledge none need not wait.
PacketPtr Responder::emit_acknowledge() {
  if (ooo_) {
    if (PacketPtr packet = emit_selective_nak()) return packet;
  }
  if (!resources_.empty() || (!nak_due_ && !acknowledge_due_)) return nullptr;
  wire::HeaderTemplate::Fields fields;
  fields.opcode = qp_.opcode(wire::Opcode::kRcAck);
  fields.sr_capable = qp_.sr_capable();
  if (std::optional<DueNak> nak = std::exchange(nak_due_, std::nullopt)) {
    fields.psn = static_cast<uint32_t>(nak->psn) & kPsnMask;
    qp_.extensions().aeth = {nak->syndrome, messages_};
  } else {
    acknowledge_due_ = false;
    fields.psn = static_cast<uint32_t>(acknowledged_) & kPsnMask;
    qp_.extensions().aeth = {aeth::kAckUnlimited, messages_};
  }
  fields.option_len = echo_.length();
  PacketPtr packet = qp_.host().pool().acquire();
  qp_.write_headers(fields, *packet);
  if (fields.option_len > 0) echo_.answer(*packet);
  if (acknowledge_due_) qp_.make_acknowledge_ready();
  return packet;
}

PacketPtr Responder::emit_response() {
  if (!owes_response()) return nullptr;
  PacketPtr packet = resources_.emit();
  if (std::optional<uint64_t> psn = resources_.take_failed()) refuse_read(*psn);
  return packet;
}

// Refuses a READ whose memory has gone before it was answered.
void Responder::refuse_read(uint64_t psn) {
  if (qp_.state() == QpState::kError && !nak_due_) return;  // a NAK of a later PSN gives way
  qp_.port().counters().resp_remote_access_errors.add();
  nak_due_ = {aeth::kNakRemoteAccess, psn};
  qp_.make_acknowledge_ready();
  qp_.raise(QpEvent::kAccessViolation);
  qp_.enter_error();
}

// Flushes in order: steps that memory still works on end first.
void Responder::flush() {
  drop_out_of_order();
  if (!nak_due_) {
    resources_.drop_pending();
    acknowledge_due_ = false;
  }
  if (!steps_.empty()) return;
  abandon_message();
  if (reusable_receive_) flush_one(reusable_receive_->wr_id);
  reusable_receive_.reset();
  if (is_xrc(qp_.type())) return;  // its receives are those of SRQs
  if (qp_.has_shared_receives()) return qp_.raise(QpEvent::kLastReceive);
  while (!qp_.receives().empty()) flush_one(qp_.receives().take().wr_id);
}

// The queue for a receive's completion. Null: an SRQ of XRC was destroyed, and its completions go
// with it.
CompletionSink* Responder::receive_cq(const Completion& completion) {
  if (completion.srqn == 0) return &qp_.receive_cq();
  const XrcQueues::Entry* named = qp_.host().xrc_queues().find(completion.srqn);
  return named ? named->cq : nullptr;
}

void Responder::flush_one(uint64_t wr_id) {
  qp_.port().counters().resp_cqe_flush_error.add();
  Completion completion;
  completion.wr_id = wr_id;
  completion.status = WcStatus::kFlushed;
  completion.opcode = WcOpcode::kReceive;
  completion.qpn = qp_.number();
  completion.srqn = message_.srqn;
  // A full queue loses the completion; the QP is in error already.
  if (CompletionSink* cq = receive_cq(completion)) (void)cq->push(completion);
}

void Responder::report_flushed(Completion completion) {
  completion.status = WcStatus::kFlushed;
  if (CompletionSink* cq = receive_cq(completion)) (void)cq->push(completion);
}

// The current receive of an SRQ of XRC, whose program goes on, is reported when memory has ended
// its work on it.
void Responder::leave_receive() {
  abandon_message();
  if (!reusable_receive_) return;
  bool placing = !steps_.empty() && !steps_.back().message_end && !steps_.back().consumes_receive;
  if (!placing) return flush_one(reusable_receive_->wr_id);
  Step& last = steps_.back();
  last.consumes_receive = true;
  last.completion.wr_id = reusable_receive_->wr_id;
  last.completion.opcode = WcOpcode::kReceive;
  last.completion.qpn = qp_.number();
  last.completion.srqn = message_.srqn;
}

void Responder::reset() {
  if (is_xrc(qp_.type())) leave_receive();
  for (uint64_t at = steps_.head(); at != steps_.tail(); ++at) steps_.at(at).forgotten = true;
  message_ = {};
  reusable_receive_.reset();
  resources_.clear();
  messages_ = 0;
  drop_out_of_order();
  agreement_.forget();
  state_ = ResponderState::kInOrder;
  nak_due_.reset();
  echo_.reset();
  acknowledge_due_ = message_bad_ = doomed_ = false;
}

}  // namespace rocefs
