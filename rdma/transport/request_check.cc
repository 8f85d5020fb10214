// Checks of a request packet by the responder: the sequence of opcodes, resources, rights and
// lengths, in this order; and the place of its payload.
#include <array>
#include <cstring>

#include "rdma/transport/qp_context.h"
#include "rdma/transport/responder.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Responder::Verdict Responder::refuse(Step& step, uint8_t syndrome) {
  if (syndrome == aeth::kNakRemoteAccess) qp_.port().counters().resp_remote_access_errors.add();
  step.nak = syndrome;
  // A service without NAKs reports an error to the near end only, by a completion.
  bool told = qp_.reliable() || step.consumes_receive;
  return told ? Verdict::kRefuse : Verdict::kDrop;
}

Responder::Verdict Responder::check_request(const Packet& packet, const wire::Transport& headers,
                                            Step& step) {
  const wire::OpcodeInfo& info = headers.info();
  bool data = info.is_send || info.is_write;
  bool begins = !data || info.first || info.only;
  bool follows = message_.active && message_.write == info.is_write;
  if (begins ? message_.active : !follows) return refuse(step, aeth::kNakInvalidRequest);
  step.begins = begins;
  // An SRQ of XRC that was destroyed has given its buffers back to the program.
  bool queue_gone = !begins && info.is_send && info.has_xrceth && !receives();
  if (queue_gone) return refuse(step, aeth::kNakInvalidRequest);
  if (begins) {
    Verdict verdict = choose_queue(headers, step);
    if (verdict != Verdict::kAccept) return verdict;
    if (!supports(info)) return refuse(step, aeth::kNakInvalidRequest);
  }
  if (info.is_write && info.has_imm) return check_with_receive(packet, headers, step);
  return check_message(packet, headers, step);
}

// A queue pair supports the operations that its access flags allow (IBTA 9.7.4.1.3), whatever the
// rights of the memory are.
bool Responder::supports(const wire::OpcodeInfo& info) const {
  if (info.is_send || info.reserved) return true;
  bool writes = info.is_write || (info.is_atomic && !info.has_atomic_eth);
  uint8_t needed = writes ? kRemoteWrite : info.is_atomic ? kRemoteAtomic : kRemoteRead;
  return (qp_.attributes().access & needed) != 0;
}

Responder::Verdict Responder::check_message(const Packet& packet, const wire::Transport& headers,
                                            Step& step) {
  const wire::OpcodeInfo& info = headers.info();
  if (step.begins) {
    Verdict verdict = begin_message(packet, headers, step);
    if (verdict != Verdict::kAccept || !(info.is_send || info.is_write)) return verdict;
  }
  step.write = message_.write;
  Verdict verdict = check_length(headers, info, step);
  if (verdict == Verdict::kAccept && info.is_write && step.begins) {
    count_write();
  }
  return verdict;
}

// The last packet of a WRITE with immediate takes a receive request, whose buffers stay unused,
// before its R_Key and length are checked (IBTA 9.7.4.1). A request without the right to its memory
// ends it (11.6.2, local access error); other refusals leave it to be flushed.
Responder::Verdict Responder::check_with_receive(const Packet& packet,
                                                 const wire::Transport& headers, Step& step) {
  ReceiveRequest receive;
  Verdict verdict = take_receive(step, receive);
  if (verdict != Verdict::kAccept) return verdict;
  message_.receive_id = receive.wr_id;
  verdict = check_message(packet, headers, step);
  if (verdict == Verdict::kAccept) return verdict;
  if (verdict == Verdict::kRefuse && step.nak == aeth::kNakRemoteAccess) {
    end_receive(step, WcStatus::kLocalAccessError);
  } else {
    reusable_receive_ = receive;
    reusable_after_ = steps_.head();
  }
  return verdict;
}

Responder::Verdict Responder::begin_message(const Packet& packet, const wire::Transport& headers,
                                            Step& step) {
  const wire::OpcodeInfo& info = headers.info();
  if (info.reserved) return refuse(step, aeth::kNakInvalidRequest);
  if (info.is_atomic) return begin_atomic(packet, headers, step);
  if (!info.is_send && !info.is_write) return begin_read(headers.reth(), step);
  message_.write = info.is_write;
  message_.received = 0;
  message_.target.clear();
  Verdict verdict = info.is_write ? begin_write(headers.reth(), step) : begin_send(step);
  message_.active = verdict == Verdict::kAccept;
  return verdict;
}

// Notes whose memory the request is for: that of the queue pair's own domain, or of the SRQ that a
// request of XRC names (IBTA A14).
Responder::Verdict Responder::choose_queue(const wire::Transport& headers, Step& step) {
  if (!headers.info().has_xrceth) {
    message_.pd = qp_.pd();
    return Verdict::kAccept;
  }
  message_.srqn = headers.xrc().srqn;
  const XrcQueues::Entry* named = qp_.host().xrc_queues().find(message_.srqn);
  if (!named) return refuse(step, aeth::kNakInvalidRequest);
  if (named->domain != qp_.xrc_domain()) return refuse(step, aeth::kNakRemoteAccess);
  message_.pd = named->receives->pd();
  return Verdict::kAccept;
}

// Null: an SRQ of XRC was destroyed in the middle of the message.
ReceiveQueue* Responder::receives() {
  if (!is_xrc(qp_.type())) return &qp_.receives();
  const XrcQueues::Entry* named = qp_.host().xrc_queues().find(message_.srqn);
  return named ? named->receives : nullptr;
}

// The R_Key of a WRITE of zero bytes is not checked.
Responder::Verdict Responder::begin_write(const wire::Reth& reth, Step& step) {
  message_.remaining = reth.dma_len;
  if (reth.dma_len > kMaxMessage) return refuse(step, aeth::kNakInvalidRequest);
  if (reth.dma_len > 0) {
    if (!qp_.host().memory().allow(reth.rkey, message_.pd, qp_.number(), kRemoteWrite, reth.va,
                                   reth.dma_len))
      return refuse(step, aeth::kNakRemoteAccess);
    message_.target.add({reth.va, reth.dma_len, reth.rkey});
  }
  return Verdict::kAccept;
}

// Takes the oldest receive request, or the one that a lost message has left.
Responder::Verdict Responder::take_receive(Step& step, ReceiveRequest& receive) {
  ReceiveQueue* queue = receives();
  if (queue) message_.receive_pd = queue->pd();
  if (reusable_receive_) {
    // Payload of the lost message that memory is still taking could overwrite the new message's.
    if (steps_.head() < reusable_after_) return Verdict::kDrop;
    receive = *std::exchange(reusable_receive_, std::nullopt);
    return Verdict::kAccept;
  }
  if (!queue) return refuse(step, aeth::kNakInvalidRequest);
  if (queue->empty()) {
    qp_.port().counters().out_of_buffer.add();
    return refuse(step, aeth::kRnrNak | (qp_.attributes().min_rnr_timer & 0x1f));
  }
  receive = queue->take();
  return Verdict::kAccept;
}

Responder::Verdict Responder::begin_send(Step& step) {
  ReceiveRequest receive;
  Verdict verdict = take_receive(step, receive);
  if (verdict != Verdict::kAccept) return verdict;
  message_.receive_id = receive.wr_id;
  message_.target = receive.sges;
  message_.remaining = receive.sges.length();
  if (!entries_allowed(receive_mover(), receive.sges.entries())) {
    end_receive(step, WcStatus::kLocalProtectionError);
    return refuse(step, aeth::kNakRemoteOperation);
  }
  return Verdict::kAccept;
}

Responder::Verdict Responder::begin_read(const wire::Reth& reth, Step& step) {
  if (reth.dma_len > kMaxMessage) return refuse(step, aeth::kNakInvalidRequest);
  bool allowed =
      reth.dma_len == 0 || qp_.host().memory().allow(reth.rkey, message_.pd, qp_.number(),
                                                     kRemoteRead, reth.va, reth.dma_len);
  if (!allowed) return refuse(step, aeth::kNakRemoteAccess);
  step.psns = psns_of(reth.dma_len, qp_.attributes().path_mtu);
  ResponderResources::Resource resource;
  resource.read = true;
  resource.first_psn = resource.sent_end = step.psn;
  resource.end_psn = step.psn + step.psns;
  resource.address = reth.va;
  resource.rkey = reth.rkey;
  resource.pd = message_.pd;
  resource.length = reth.dma_len;
  if (!resources_.admit(resource, step.slot)) return refuse(step, aeth::kNakInvalidRequest);
  step.action = Action::kRead;
  step.message_end = true;
  qp_.port().counters().rx_read_requests.add();
  return Verdict::kAccept;
}

// ATOMIC WRITE needs the right of a WRITE and is answered by an empty READ response (IBTA A19).
Responder::Verdict Responder::begin_atomic(const Packet& packet, const wire::Transport& headers,
                                           Step& step) {
  constexpr uint32_t kSize = 8;
  using Kind = AtomicOperation::Kind;
  ResponderResources::Resource resource;
  resource.first_psn = resource.sent_end = step.psn;
  resource.end_psn = step.psn + 1;
  resource.pd = message_.pd;
  resource.length = kSize;
  if (headers.info().has_atomic_eth) {
    const wire::AtomicEth& eth = headers.atomic();
    bool swap = headers.operation() == wire::Opcode::kRcCmpSwap;
    resource.address = eth.va;
    resource.rkey = eth.rkey;
    resource.operation = {swap ? Kind::kCompareSwap : Kind::kFetchAdd, eth.swap_add, eth.compare};
  } else {
    const wire::Reth& reth = headers.reth();
    bool whole = reth.dma_len == kSize && headers.payload_len() == kSize;
    if (!whole) return refuse(step, aeth::kNakInvalidRequest);
    resource.address = reth.va;
    resource.rkey = reth.rkey;
    resource.answer = wire::Opcode::kRcReadResponseOnly;
    resource.access = kRemoteWrite;
    resource.operation.kind = Kind::kWrite;
    std::memcpy(&resource.operation.swap_add, payload_bytes(packet), kSize);
  }
  if (resource.address % kSize != 0) return refuse(step, aeth::kNakInvalidRequest);
  bool allowed = qp_.host().memory().allow(resource.rkey, message_.pd, qp_.number(),
                                           resource.access, resource.address, kSize);
  if (!allowed) return refuse(step, aeth::kNakRemoteAccess);
  if (!resources_.admit(resource, step.slot)) return refuse(step, aeth::kNakInvalidRequest);
  step.action = Action::kAtomic;
  step.message_end = true;
  qp_.port().counters().rx_atomic_requests.add();
  return Verdict::kAccept;
}

// Checks the length: first and middle packets are full, a last one holds at least a byte; a WRITE
// has the length that its RETH announced; a SEND fits the receive request, behind the 40 bytes of
// the GRH where there is one.
Responder::Verdict Responder::check_length(const wire::Transport& headers,
                                           const wire::OpcodeInfo& info, Step& step) {
  bool datagram = qp_.type() == QpType::kUd;
  uint32_t mtu = datagram ? qp_.port().mtu() : qp_.attributes().path_mtu;
  uint32_t length = headers.payload_len();
  bool ends = info.last || info.only;
  bool size_ok = info.only   ? length <= mtu
                 : info.last ? length >= 1 && length <= mtu
                             : length == mtu;
  bool fits = length + (datagram ? kGrhLen : 0) <= message_.remaining;
  bool complete = !message_.write || !ends || length == message_.remaining;
  bool reliable = qp_.reliable();
  if (!message_.write && size_ok && !fits) {
    qp_.port().counters().resp_local_length_error.add();
    // A service that cannot refuse drops the message, and the receive request stays.
    if (reliable) end_receive(step, WcStatus::kLocalLengthError);
  }
  if (!size_ok || !fits || !complete) return refuse(step, aeth::kNakInvalidRequest);
  return Verdict::kAccept;
}

// Asks memory to take the payload.
void Responder::place(Packet& packet, Step& step) {
  uint16_t length = packet.payload.length;
  if (!placed_early_) {
    Mover mover = message_.write ? qp_.mover(*this, kRemoteWrite, message_.pd) : receive_mover();
    mover.behind = pending_steps_ > 0;
    Moved moved =
        scatter_payload(mover, message_.target.entries(), message_.received, packet, steps_.tail());
    step.pending += moved.pending;
    step.failed |= moved.failed;
  }
  message_.received += length;
  message_.remaining -= length;
}

// A datagram's receive begins with the routing header: IPv6 as it came, IPv4 in its last 20 bytes
// (IBTA A17.4.5.2). The first 20, which the IBTA leaves undefined, are zero as in Soft-RoCE: with
// the rest of an IPv6 header there a reader could take the header for one of IPv6.
void Responder::place_grh(const Packet& packet, Step& step) {
  static constexpr std::array<uint8_t, kGrhLen - wire::kIpv4Len> kNothing{};
  bool ipv6 = step.completion.grh == Grh::kIpv6;
  auto put = [&](size_t at, std::span<const uint8_t> bytes) {
    Moved moved = scatter(receive_mover(), message_.target.entries(), at, bytes, steps_.tail());
    step.pending += moved.pending;
    step.failed |= moved.failed;
  };
  if (!ipv6) put(0, kNothing);
  size_t length = ipv6 ? wire::kIpv6Len : wire::kIpv4Len;
  put(kGrhLen - length, packet.header_bytes().first(length));
  message_.received = kGrhLen;
  message_.remaining -= kGrhLen;
}

void Responder::finish_message(const wire::Transport& headers, const wire::OpcodeInfo& info,
                               Step& step) {
  step.message_end = true;
  if (!message_.write || info.has_imm) {
    step.solicited = headers.solicited();
    step.completion.has_immediate = info.has_imm;
    if (info.has_imm) step.completion.immediate = headers.imm();
    step.invalidates = step.completion.has_invalidated = info.has_ieth;
    if (info.has_ieth) step.completion.immediate = headers.ieth().rkey;
    end_receive(step, WcStatus::kSuccess);
  }
  message_.active = false;
}

void Responder::end_receive(Step& step, WcStatus status) {
  step.consumes_receive = true;
  Completion& completion = step.completion;
  completion.wr_id = message_.receive_id;
  completion.status = status;
  completion.opcode = message_.write ? WcOpcode::kReceiveWriteImm : WcOpcode::kReceive;
  completion.byte_len = static_cast<uint32_t>(message_.received);
  completion.qpn = qp_.number();
  completion.srqn = message_.srqn;
  message_.active = false;
}

}  // namespace rocefs
