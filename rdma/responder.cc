#include "rdma/responder.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "rdma/device.h"
#include "rdma/port.h"
#include "rdma/psn.h"
#include "rdma/qp.h"

namespace rocefs {
namespace {

// AETH syndromes, IBTA table 43. 31 credits: end-to-end flow control is not in use.
constexpr uint8_t kAckUnlimited = 0x1f;
constexpr uint8_t kRnrNak = 0x20;
constexpr uint8_t kNakSequence = 0x60;
constexpr uint8_t kNakInvalidRequest = 0x61;
constexpr uint8_t kNakRemoteAccess = 0x62;
constexpr uint8_t kNakRemoteOperation = 0x63;

bool is_rnr(uint8_t syndrome) {
  return (syndrome & 0xe0) == kRnrNak;
}

}  // namespace

Responder::Responder(Qp& qp, size_t depth) : qp_(qp), queue_(depth) {}

Responder::~Responder() {
  assert(pending_writes_ == 0);
  for (Step& step : steps_) {
    if (step.packet) qp_.device().fabric().pool().release(step.packet);
  }
}

void Responder::start(uint32_t psn) {
  expected_ = retired_ = kPsnBase + psn;
}

Result<void> Responder::post(const ReceiveRequest& request) {
  if (queue_.full()) return Error{ENOMEM, "the receive queue is full"};
  queue_.push(request);
  if (qp_.state() == QpState::kError) flush();
  return {};
}

void Responder::receive(Packet* packet, const wire::Parsed& parsed, TimeNs) {
  uint64_t psn = unwrap_psn(parsed.headers.bth.psn, expected_);
  if (psn != expected_) {
    take_out_of_order(psn);
    qp_.device().fabric().pool().release(packet);
    return;
  }
  nak_outstanding_ = false;
  const wire::OpcodeInfo& info = wire::opcode_info(static_cast<uint8_t>(parsed.headers.bth.opcode));
  Step step;
  step.psn = psn;
  step.acknowledge = parsed.headers.bth.ack_req;
  switch (judge(parsed, info, step)) {
    case Verdict::kDrop:
      break;
    case Verdict::kNak:
      nak_outstanding_ = true;
      add_step(step);
      break;
    case Verdict::kAccept:
      ++expected_;
      message_.received += parsed.payload_len;
      place(packet, step);
      if (info.last || info.only) finish_message(step);
      if (step.packet != packet) qp_.device().fabric().pool().release(packet);
      add_step(step);
      return;
  }
  qp_.device().fabric().pool().release(packet);
}

// IBTA 9.7.4.1.2: behind the expected PSN is a duplicate, which is acknowledged again and not
// executed again; ahead of it is a gap, which gets one NAK.
void Responder::take_out_of_order(uint64_t psn) {
  PortCounters& counters = qp_.port().counters();
  if (psn < expected_) {
    counters.duplicate_request.add();
    acknowledge_due_ = true;
    return qp_.make_responder_ready();
  }
  counters.out_of_sequence.add();
  if (nak_outstanding_) return;
  nak_outstanding_ = true;
  Step step;
  step.psn = expected_;
  step.nak = kNakSequence;
  add_step(step);
}

Responder::Verdict Responder::refuse(Step& step, uint8_t syndrome) {
  PortCounters& counters = qp_.port().counters();
  if (syndrome == kNakRemoteAccess) counters.resp_remote_access_errors.add();
  step.nak = syndrome;
  return Verdict::kNak;
}

// IBTA 9.7.4.1.3 to 9.7.4.1.6: sequence of opcodes, resources, rights, lengths.
Responder::Verdict Responder::judge(const wire::Parsed& parsed, const wire::OpcodeInfo& info,
                                    Step& step) {
  bool write = info.is_write;
  bool begins = info.first || info.only;
  bool follows = message_.active && message_.write == write && !begins;
  // Immediate data and invalidation would be lost on this responder: it refuses them.
  bool served = (info.is_write || info.is_send) && !info.has_imm && !info.has_ieth;
  if (!served || (begins ? message_.active : !follows)) {
    return refuse(step, kNakInvalidRequest);
  }
  if (begins) {
    Verdict verdict = begin_message(parsed, info, step);
    if (verdict != Verdict::kAccept) {
      message_ = {};
      return verdict;
    }
  }
  return check_length(parsed, info, step);
}

Responder::Verdict Responder::begin_message(const wire::Parsed& parsed,
                                            const wire::OpcodeInfo& info, Step& step) {
  message_ = {};
  message_.active = true;
  message_.write = info.is_write;
  return info.is_write ? begin_write(parsed.headers.reth, step) : begin_send(step);
}

// C9-88: the R_Key is not checked for a write of no bytes.
Responder::Verdict Responder::begin_write(const wire::Reth& reth, Step& step) {
  message_.remaining = reth.dma_len;
  if (reth.dma_len > 0) {
    const MemoryRegion* region = qp_.device().memory().find(reth.rkey);
    bool allowed = (qp_.attributes().access & kRemoteWrite) && region && region->pd == qp_.pd() &&
                   (region->access & kRemoteWrite) && region->covers(reth.va, reth.dma_len);
    if (!allowed) return refuse(step, kNakRemoteAccess);
    message_.region_index = MemoryTable::index_of(reth.rkey);
    message_.region_generation = region->generation;
    message_.region_offset = reth.va - region->address;
  }
  qp_.port().counters().rx_write_requests.add();
  return Verdict::kAccept;
}

Responder::Verdict Responder::begin_send(Step& step) {
  if (queue_.empty()) {
    qp_.port().counters().out_of_buffer.add();
    return refuse(step, kRnrNak | (qp_.attributes().min_rnr_timer & 0x1f));
  }
  message_.receive = queue_.front();
  queue_.pop();
  const Sge& sge = message_.receive.sge;
  message_.remaining = sge.length;
  if (sge.length == 0) return Verdict::kAccept;
  const MemoryRegion* region = qp_.device().memory().find(sge.lkey);
  bool allowed = region && region->pd == qp_.pd() && (region->access & kLocalWrite) &&
                 region->covers(sge.address, sge.length);
  if (!allowed) {
    end_receive(step, WcStatus::kLocalProtectionError);
    return refuse(step, kNakRemoteOperation);
  }
  message_.region_index = MemoryTable::index_of(sge.lkey);
  message_.region_generation = region->generation;
  message_.region_offset = sge.address - region->address;
  return Verdict::kAccept;
}

// C9-92 and C9-93: first and middle packets are full, a last one holds at least a byte; a write's
// bytes are those that its RETH announced; a send's fit the receive request.
Responder::Verdict Responder::check_length(const wire::Parsed& parsed, const wire::OpcodeInfo& info,
                                           Step& step) {
  uint32_t mtu = qp_.attributes().path_mtu;
  uint32_t length = parsed.payload_len;
  bool ends = info.last || info.only;
  bool size_ok = info.only   ? length <= mtu
                 : info.last ? length >= 1 && length <= mtu
                             : length == mtu;
  bool fits = length <= message_.remaining;
  bool complete = !message_.write || !ends || length == message_.remaining;
  if (!message_.write && size_ok && !fits) {
    qp_.port().counters().resp_local_length_error.add();
    end_receive(step, WcStatus::kLocalLengthError);
  }
  if (!size_ok || !fits || !complete) return refuse(step, kNakInvalidRequest);
  return Verdict::kAccept;
}

void Responder::finish_message(Step& step) {
  step.message_end = true;
  if (!message_.write) end_receive(step, WcStatus::kSuccess);
  message_.active = false;
}

void Responder::end_receive(Step& step, WcStatus status) {
  step.consumes_receive = true;
  step.completion = receive_completion(message_.receive, status);
  step.completion.byte_len = static_cast<uint32_t>(message_.received);
  message_.active = false;
}

Completion Responder::receive_completion(const ReceiveRequest& request, WcStatus status) {
  Completion completion;
  completion.wr_id = request.wr_id;
  completion.status = status;
  completion.opcode = WcOpcode::kReceive;
  completion.qpn = qp_.number();
  return completion;
}

// Asks memory to take the payload. The packet is kept in the step while that takes time.
void Responder::place(Packet* packet, Step& step) {
  uint16_t length = packet->payload.length;
  uint64_t offset = message_.region_offset;
  message_.region_offset += length;
  message_.remaining -= length;
  if (length == 0) return;
  const MemoryRegion* region =
      qp_.device().memory().at(message_.region_index, message_.region_generation);
  if (!region) {  // deregistered in the middle of the message
    step.failed = true;
    return;
  }
  // Memory that answers later needs bytes that stay: not those of a region that may go meanwhile.
  if (!region->memory->direct() && packet->payload.kind == Payload::Kind::kLocal) {
    materialize(qp_.device().fabric().pool(), packet);
  }
  std::span<const uint8_t> source(payload_bytes(*packet), length);
  uint64_t ticket = first_step_ + steps_.size();
  switch (region->memory->write(offset, source, *this, ticket)) {
    case Memory::Outcome::kDone:
      break;
    case Memory::Outcome::kFailed:
      step.failed = true;
      break;
    case Memory::Outcome::kPending:
      step.placed = false;
      step.packet = packet;
      ++pending_writes_;
      break;
  }
}

void Responder::memory_done(uint64_t ticket, bool ok) {
  Step& step = steps_[ticket - first_step_];
  --pending_writes_;
  step.placed = true;
  step.failed = !ok;
  qp_.device().fabric().pool().release(std::exchange(step.packet, nullptr));
  take_steps();
  qp_.memory_settled();
}

void Responder::add_step(Step step) {
  if (steps_.empty() && step.placed) return take_step(step);
  steps_.push_back(step);
}

void Responder::take_steps() {
  while (!steps_.empty() && steps_.front().placed) {
    Step step = steps_.front();
    steps_.pop_front();
    ++first_step_;
    take_step(step);
  }
  if (steps_.empty() && qp_.state() == QpState::kError) flush();
}

// Everything before this step is placed: now it may be told.
void Responder::take_step(Step& step) {
  if (qp_.state() == QpState::kError) {
    if (step.consumes_receive) step.completion.status = WcStatus::kFlushed;
  } else if (step.failed) {
    step.nak = message_.write ? kNakRemoteAccess : kNakRemoteOperation;
    if (step.consumes_receive) step.completion.status = WcStatus::kLocalProtectionError;
  }
  if (step.nak) {
    nak_due_ = true;
    nak_syndrome_ = step.nak;
    nak_psn_ = step.psn;
  } else {
    retired_ = step.psn + 1;
    if (step.message_end) messages_ = (messages_ + 1) & 0xffffff;
    if (step.acknowledge) acknowledge_due_ = true;
  }
  bool fatal = step.nak && step.nak != kNakSequence && !is_rnr(step.nak);
  if (step.consumes_receive) {
    if (step.completion.status != WcStatus::kSuccess) {
      qp_.port().counters().resp_cqe_error.add();
    }
    if (!qp_.receive_cq().push(step.completion)) fatal = true;
  }
  if (nak_due_ || acknowledge_due_) qp_.make_responder_ready();
  if (fatal) qp_.enter_error();
}

Packet* Responder::emit() {
  if (!nak_due_ && !acknowledge_due_) return nullptr;
  wire::Headers headers = qp_.header_template();
  headers.bth.opcode = wire::Opcode::kRcAck;
  if (nak_due_) {
    nak_due_ = false;
    headers.bth.psn = static_cast<uint32_t>(nak_psn_) & kPsnMask;
    headers.aeth = {nak_syndrome_, messages_};
  } else {
    acknowledge_due_ = false;
    headers.bth.psn = static_cast<uint32_t>(retired_ - 1) & kPsnMask;
    headers.aeth = {kAckUnlimited, messages_};
  }
  Packet* packet = qp_.device().fabric().pool().acquire();
  wire::finish_lengths(headers, 0);
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  if (nak_due_ || acknowledge_due_) qp_.make_responder_ready();
  return packet;
}

// In order: what memory still works on ends first.
void Responder::flush() {
  if (!steps_.empty()) return;
  if (message_.active && !message_.write) flush_one(message_.receive);
  message_ = {};
  while (!queue_.empty()) {
    ReceiveRequest request = queue_.front();
    queue_.pop();
    flush_one(request);
  }
}

void Responder::flush_one(const ReceiveRequest& request) {
  qp_.port().counters().resp_cqe_flush_error.add();
  // A full queue loses it; the QP is in error already.
  (void)qp_.receive_cq().push(receive_completion(request, WcStatus::kFlushed));
}

}  // namespace rocefs
