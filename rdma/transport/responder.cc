#include "rdma/transport/responder.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "rdma/transport/qp.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {
namespace {

// Packets that may wait for memory; what comes beyond them is lost, as it would be in a full NIC.
constexpr size_t kMaxSteps = 4096;

bool is_fatal(uint8_t nak) {
  return aeth::kind_of(nak) == aeth::Kind::kNak && nak != aeth::kNakSequence;
}

}  // namespace

Responder::Responder(Qp& qp) : qp_(qp), steps_(kMaxSteps), replies_(qp) {}

Responder::~Responder() {
  assert(pending_steps_ == 0);
  for (uint64_t at = steps_.head(); at != steps_.tail(); ++at) {
    if (Packet* packet = steps_.at(at).packet) qp_.host().pool().release(packet);
  }
}

void Responder::start(uint32_t psn) {
  expected_ = kPsnBase + psn;
  acknowledged_ = expected_ - 1;
  agreement_.forget();
  forget_ahead();
}

void Responder::receive(Packet* packet, const wire::Transport& headers) {
  if (!qp_.receives_packets() || steps_.full()) {
    return qp_.host().pool().release(packet);
  }
  if (qp_.state() == QpState::kRtr && qp_.type() != QpType::kUd) qp_.tell(QpEvent::kEstablished);
  switch (qp_.type()) {
    case QpType::kRc:
      return receive_reliable(packet, headers);
    case QpType::kUc:
      return receive_connected(packet, headers);
    case QpType::kUd:
      return receive_datagram(packet, headers);
  }
}

// In PSN order only: behind the expected PSN is a duplicate, ahead of it a gap.
void Responder::receive_reliable(Packet* packet, const wire::Transport& headers) {
  agreement_.heard(headers.reserved6());
  uint64_t psn = unwrap_psn(headers.psn(), expected_);
  if (psn > expected_) {
    qp_.note_gap(psn - expected_);
    return take_gap(packet, headers, psn);
  }
  if (psn < expected_) {
    take_duplicate(headers, psn);
    return qp_.host().pool().release(packet);
  }
  if (ahead_) ahead_->holes.count_arrival();
  take_expected(packet, headers);
  if (ahead_) take_kept();
}

void Responder::take_expected(Packet* packet, const wire::Transport& headers) {
  const wire::OpcodeInfo& info = headers.info();
  nak_outstanding_ = refused_ = false;
  Step step;
  step.psn = expected_;
  step.acknowledge = headers.ack_req();
  if (judge(headers, info, step) == Verdict::kAccept) {
    if (ahead_) note_expected(step.psns);
    expected_ += step.psns;
    return accept(packet, headers, step);
  }
  nak_outstanding_ = refused_ = true;
  forget_ahead();  // the far end goes back, or fails
  add_step(step);
  qp_.host().pool().release(packet);
}

// An unreliable connection: a message of which a packet is missing is dropped, and with it all
// packets up to the next first one. Nothing comes twice or late. There are no answers.
void Responder::receive_connected(Packet* packet, const wire::Transport& headers) {
  const wire::OpcodeInfo& info = headers.info();
  uint64_t psn = unwrap_psn(headers.psn(), expected_);
  if (psn < expected_) {
    qp_.port().counters().duplicate_request.add();
    return qp_.host().pool().release(packet);
  }
  if (psn > expected_) qp_.port().counters().out_of_sequence.add();
  bool begins = info.first || info.only;
  if (psn != expected_ || begins) abandon();
  expected_ = psn + 1;
  Step step;
  step.psn = psn;
  Verdict verdict = begins || message_.active ? judge(headers, info, step) : Verdict::kDrop;
  if (verdict == Verdict::kAccept) return accept(packet, headers, step);
  if (verdict == Verdict::kRefuse) add_step(step);
  abandon();
  qp_.host().pool().release(packet);
}

void Responder::receive_datagram(Packet* packet, const wire::Transport& headers) {
  const wire::OpcodeInfo& info = headers.info();
  Step step;
  if (headers.deth().qkey != qp_.attributes().qkey) {
    qp_.port().counters().rx_unknown_qp.add();
    return qp_.host().pool().release(packet);
  }
  step.completion.source_qpn = headers.deth().src_qpn;
  step.completion.has_grh = true;
  Verdict verdict = judge(headers, info, step);
  if (verdict == Verdict::kAccept) {
    place_grh(packet, step);
    return accept(packet, headers, step);
  }
  if (verdict == Verdict::kRefuse) add_step(step);
  abandon();
  qp_.host().pool().release(packet);
}

void Responder::accept(Packet* packet, const wire::Transport& headers, Step& step) {
  const wire::OpcodeInfo& info = headers.info();
  if (step.action == Action::kNone) {
    place(packet, step);
    if (info.last || info.only) finish_message(headers, info, step);
  }
  if (step.pending > 0) {
    step.packet = packet;
    ++pending_steps_;
  }
  add_step(step);
  if (step.pending == 0) qp_.host().pool().release(packet);
}

// It is not executed again: a SEND or WRITE is acknowledged again, a READ or atomic answered again.
void Responder::take_duplicate(const wire::Transport& headers, uint64_t psn) {
  const wire::OpcodeInfo& info = headers.info();
  qp_.port().counters().duplicate_request.add();
  if (info.has_atomic_eth) return replies_.replay(psn, psn + 1);
  if (!info.is_send && !info.is_write) {
    return replies_.replay(psn, psn + psns_of(headers.reth().dma_len, qp_.attributes().path_mtu));
  }
  acknowledge_due_ = true;
  qp_.make_acknowledge_ready();
}

// A gap gets one NAK, and what comes behind it is dropped, unless one NAK for each missing packet
// is agreed.
void Responder::take_gap(Packet* packet, const wire::Transport& headers, uint64_t psn) {
  qp_.port().counters().out_of_sequence.add();
  if (selective() && !refused_) return keep(packet, headers, psn);
  qp_.host().pool().release(packet);
  forget_ahead();
  if (nak_outstanding_) return;
  nak_outstanding_ = true;
  Step step;
  step.psn = expected_;
  step.nak = aeth::kNakSequence;
  add_step(step);
}

// The message that was being received is lost; its receive request is there for the next one.
void Responder::abandon() {
  if (message_.active && !message_.write) {
    held_.emplace();
    held_->wr_id = message_.receive_id;
    held_->sges = message_.target;
    held_until_ = message_.received > 0 ? steps_.tail() : steps_.head();
  }
  message_.active = false;
}

void Responder::memory_done(uint64_t ticket, bool ok) {
  Step& step = steps_.at(ticket);
  step.failed |= !ok;
  if (--step.pending == 0) {
    --pending_steps_;
    if (step.packet) {
      qp_.host().pool().release(std::exchange(step.packet, nullptr));
    }
    take_steps();
    if (ahead_) take_kept();
  }
  qp_.memory_settled();
}

void Responder::add_step(Step& step) {
  // What need not wait is not queued.
  if (steps_.empty() && step.pending == 0 && step.action != Action::kAtomic) return take_step(step);
  steps_.push(step);
  take_steps();
}

void Responder::take_steps() {
  while (!steps_.empty() && steps_.front().pending == 0) {
    if (!execute(steps_.front())) return;
    Step step = steps_.front();
    steps_.pop();
    take_step(step);
  }
  if (steps_.empty() && qp_.state() == QpState::kError) flush();
}

// Everything before this step is done: an atomic is executed now. False while memory works on it.
bool Responder::execute(Step& step) {
  if (step.action != Action::kAtomic || step.executed || step.forgotten) return true;
  if (!qp_.receives_packets()) return true;
  step.executed = true;
  Replies::Resource& resource = replies_.resource(step.slot);
  const MemoryRegion* region = qp_.host().memory().allow(
      resource.rkey, qp_.pd(), qp_.number(), kRemoteAtomic, resource.address, resource.length);
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

// Everything before this step is placed, and its own payload: now it may be told.
void Responder::take_step(Step& step) {
  if (step.forgotten) return;
  spoilt_ = step.failed || (spoilt_ && !step.begins);
  step.failed |= spoilt_ && step.message_end;
  settle(step);
  bool reliable = qp_.type() == QpType::kRc;
  if (step.nak && reliable) {
    nak_due_ = true;
    nak_syndrome_ = step.nak;
    nak_psn_ = step.psn;
  } else if (qp_.state() != QpState::kError) {
    if (step.message_end) messages_ = (messages_ + 1) & 0xffffff;
    if (step.action == Action::kNone) {
      acknowledged_ = step.psn;
      acknowledge_due_ |= step.acknowledge && reliable;
    } else {
      replies_.resource(step.slot).messages = messages_;
      if (step.action == Action::kAtomic) replies_.resource(step.slot).original = original_;
      replies_.answer(step.slot);
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
    if (!qp_.receive_cq().push(step.completion, step.solicited)) {
      qp_.tell(QpEvent::kFatal);
      fatal = true;
    }
  } else if (fatal) {
    bool access = step.nak == aeth::kNakRemoteAccess;
    qp_.tell(access ? QpEvent::kAccessViolation : QpEvent::kInvalidRequest);
  }
  if (nak_due_ || acknowledge_due_) qp_.make_acknowledge_ready();
  if (fatal) qp_.enter_error();
}

// What became of it, if not what it was meant to be.
void Responder::settle(Step& step) {
  if (qp_.state() == QpState::kError) {
    if (step.consumes_receive) step.completion.status = WcStatus::kFlushed;
    step.nak = 0;
    return;
  }
  if (step.failed) {
    bool ours = !step.write && step.action == Action::kNone;  // a receive's memory, or a key's
    step.nak = ours ? aeth::kNakRemoteOperation : aeth::kNakRemoteAccess;
    if (!ours) qp_.port().counters().resp_remote_access_errors.add();
    if (step.consumes_receive) step.completion.status = WcStatus::kLocalProtectionError;
    return;
  }
  if (!step.invalidates || step.nak) return;
  if (qp_.host().memory().invalidate(step.completion.immediate, qp_.number())) return;
  step.nak = aeth::kNakRemoteAccess;
  qp_.port().counters().resp_remote_access_errors.add();
  step.completion.status = WcStatus::kRemoteInvalidRequest;
}

// Responses to READs and atomics go before it: they acknowledge all ahead of them. NAKs that
// acknowledge nothing need not wait.
Packet* Responder::emit_acknowledge() {
  if (ahead_) {
    if (Packet* packet = emit_selective_nak()) return packet;
  }
  if (!replies_.empty() || (!nak_due_ && !acknowledge_due_)) return nullptr;
  wire::HeaderTemplate::Fields fields;
  fields.opcode = wire::Opcode::kRcAck;
  fields.reserved6 = qp_.selective_bit();
  if (std::exchange(nak_due_, false)) {
    fields.psn = static_cast<uint32_t>(nak_psn_) & kPsnMask;
    qp_.extensions().aeth = {nak_syndrome_, messages_};
  } else {
    acknowledge_due_ = false;
    fields.psn = static_cast<uint32_t>(acknowledged_) & kPsnMask;
    qp_.extensions().aeth = {aeth::kAckUnlimited, messages_};
  }
  Packet* packet = qp_.host().pool().acquire();
  qp_.write_headers(fields, packet);
  if (acknowledge_due_) qp_.make_acknowledge_ready();
  return packet;
}

Packet* Responder::emit_response() {
  return replies_.emit();
}

void Responder::refuse_read(uint64_t psn) {
  if (qp_.state() == QpState::kError && !nak_due_) return;  // what is due later gives way
  qp_.port().counters().resp_remote_access_errors.add();
  nak_due_ = true;
  nak_syndrome_ = aeth::kNakRemoteAccess;
  nak_psn_ = psn;
  qp_.make_acknowledge_ready();
  qp_.tell(QpEvent::kAccessViolation);
  qp_.enter_error();
}

// In order: what memory still works on ends first.
void Responder::flush() {
  forget_ahead();
  if (!nak_due_) {
    replies_.drop_due();
    acknowledge_due_ = false;
  }
  if (!steps_.empty()) return;
  abandon();
  if (held_) flush_one(held_->wr_id);
  held_.reset();
  if (qp_.has_shared_receives()) return qp_.tell(QpEvent::kLastReceive);
  while (!qp_.receives().empty()) flush_one(qp_.receives().take().wr_id);
}

void Responder::flush_one(uint64_t wr_id) {
  qp_.port().counters().resp_cqe_flush_error.add();
  Completion completion;
  completion.wr_id = wr_id;
  completion.status = WcStatus::kFlushed;
  completion.opcode = WcOpcode::kReceive;
  completion.qpn = qp_.number();
  // A full queue loses it; the QP is in error already.
  (void)qp_.receive_cq().push(completion);
}

void Responder::reset() {
  for (uint64_t at = steps_.head(); at != steps_.tail(); ++at) steps_.at(at).forgotten = true;
  message_ = {};
  held_.reset();
  replies_.clear();
  messages_ = 0;
  forget_ahead();
  agreement_.forget();
  nak_outstanding_ = refused_ = acknowledge_due_ = nak_due_ = spoilt_ = false;
}

}  // namespace rocefs
