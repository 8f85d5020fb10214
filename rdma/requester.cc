#include "rdma/requester.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "rdma/device.h"
#include "rdma/port.h"
#include "rdma/psn.h"
#include "rdma/qp.h"

namespace rocefs {

Requester::Requester(Qp& qp, size_t depth)
    : qp_(qp),
      queue_(depth),
      timer_(event_of<&Requester::on_timeout>(this)),
      rnr_timer_(event_of<&Requester::on_rnr_wait_over>(this)) {}

Requester::~Requester() {
  qp_.device().fabric().outstanding().requests -=
      static_cast<int64_t>(queue_.tail() - queue_.head());
  if (fetched_) qp_.device().fabric().pool().release(fetched_);
}

void Requester::start(uint32_t psn) {
  unacknowledged_ = next_ = frontier_ = kPsnBase + psn;
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
}

Result<void> Requester::post(const SendRequest& request) {
  if (queue_.full()) return Error{ENOMEM, "the send queue is full"};
  Wqe wqe;
  wqe.request = request;
  queue_.push(wqe);
  ++qp_.device().fabric().outstanding().requests;
  if (qp_.state() == QpState::kError) {
    flush();
  } else {
    qp_.make_requester_ready();
  }
  return {};
}

bool Requester::may_send() const {
  return qp_.state() == QpState::kRts && !rnr_waiting_ && !failed_ && cursor_ != queue_.tail() &&
         next_ - unacknowledged_ < qp_.attributes().window;
}

// A message takes as many PSNs as packets, at least one (IBTA 9.7.2).
void Requester::begin(Wqe& wqe) {
  uint32_t mtu = qp_.attributes().path_mtu;
  wqe.first_psn = next_;
  wqe.packets = std::max<uint64_t>(1, (uint64_t{wqe.request.sge.length} + mtu - 1) / mtu);
}

Packet* Requester::emit(TimeNs now) {
  if (!may_send() || fetch_ == Fetch::kPending) return nullptr;
  Wqe& wqe = queue_.at(cursor_);
  if (wqe.packets == 0) begin(wqe);
  if (fetch_ == Fetch::kReady) {
    assert(fetched_psn_ == next_);
    fetch_ = Fetch::kNone;
    return sent(std::exchange(fetched_, nullptr), now);
  }
  return build(wqe, now);
}

Packet* Requester::build(const Wqe& wqe, TimeNs now) {
  uint64_t offset = (next_ - wqe.first_psn) * qp_.attributes().path_mtu;
  uint32_t length = static_cast<uint32_t>(
      std::min<uint64_t>(qp_.attributes().path_mtu, wqe.request.sge.length - offset));
  Packet* packet = qp_.device().fabric().pool().acquire();
  if (!attach_payload(wqe, packet, offset, length)) {
    if (fetch_ != Fetch::kPending) qp_.device().fabric().pool().release(packet);
    return nullptr;
  }
  return sent(packet, now);
}

// False when the packet cannot go now: its bytes are on their way, or the request has failed.
bool Requester::attach_payload(const Wqe& wqe, Packet* packet, uint64_t offset, uint32_t length) {
  packet->payload.length = static_cast<uint16_t>(length);
  if (length == 0) return true;
  const MemoryTable& table = qp_.device().memory();
  const Sge& sge = wqe.request.sge;
  const MemoryRegion* region = table.find(sge.lkey);
  if (!region || region->pd != qp_.pd() || !region->covers(sge.address, sge.length)) {
    fail_at_cursor(WcStatus::kLocalProtectionError);
    return false;
  }
  uint64_t at = sge.address - region->address + offset;
  if (region->memory->direct()) {
    packet->payload.kind = Payload::Kind::kLocal;
    packet->payload.table = &table;
    packet->payload.index = MemoryTable::index_of(sge.lkey);
    packet->payload.generation = region->generation;
    packet->payload.offset = at;
    return true;
  }
  Frame* frame = qp_.device().fabric().pool().attach_frame(packet);
  packet->payload.kind = Payload::Kind::kFrame;
  fetched_ = packet;
  fetched_psn_ = next_;
  fetch_stale_ = false;
  fetch_ = Fetch::kPending;
  std::span<uint8_t> into(frame->bytes.data(), length);
  switch (region->memory->read(at, into, *this, 0)) {
    case Memory::Outcome::kPending:
      return false;
    case Memory::Outcome::kDone:
      break;
    case Memory::Outcome::kFailed:
      fail_at_cursor(WcStatus::kLocalProtectionError);
      break;
  }
  fetch_ = Fetch::kNone;
  fetched_ = nullptr;
  return !failed_;
}

void Requester::memory_done(uint64_t, bool ok) {
  fetch_ = Fetch::kReady;
  if (fetch_stale_ || qp_.state() != QpState::kRts) {
    drop_fetch();
    return qp_.memory_settled();
  }
  if (!ok) {
    drop_fetch();
    return fail_at_cursor(WcStatus::kLocalProtectionError);
  }
  qp_.make_requester_ready();
}

void Requester::drop_fetch() {
  if (fetch_ == Fetch::kPending) {
    fetch_stale_ = true;  // the memory still writes into its frame
    return;
  }
  if (fetch_ == Fetch::kNone) return;
  fetch_ = Fetch::kNone;
  qp_.device().fabric().pool().release(std::exchange(fetched_, nullptr));
  qp_.make_requester_ready();
}

// A request that cannot be sent ends when all before it have ended, so that these keep their true
// status.
void Requester::fail_at_cursor(WcStatus status) {
  failed_ = true;
  queue_.at(cursor_).failure = status;
  if (cursor_ == queue_.head()) fail_front(status);
}

namespace {

wire::Opcode opcode_of(SendOp op, bool first, bool last) {
  using wire::Opcode;
  if (op == SendOp::kWrite) {
    if (first) return last ? Opcode::kRcWriteOnly : Opcode::kRcWriteFirst;
    return last ? Opcode::kRcWriteLast : Opcode::kRcWriteMiddle;
  }
  if (first) return last ? Opcode::kRcSendOnly : Opcode::kRcSendFirst;
  return last ? Opcode::kRcSendLast : Opcode::kRcSendMiddle;
}

}  // namespace

// Every message end asks for an acknowledgement; so does the packet that closes the window or has
// filled half of it, or the sender would wait for ever.
bool Requester::wants_acknowledge(const Wqe& wqe) {
  uint32_t window = qp_.attributes().window;
  return next_ == wqe.last_psn() || next_ + 1 - unacknowledged_ >= window ||
         since_request_ + 1 >= std::max(1u, window / 2);
}

void Requester::write_headers(const Wqe& wqe, Packet* packet, uint64_t offset, uint32_t length) {
  bool first = offset == 0;
  bool last = next_ == wqe.last_psn();
  wire::Headers headers = qp_.header_template();
  headers.bth.opcode = opcode_of(wqe.request.op, first, last);
  headers.bth.psn = static_cast<uint32_t>(next_) & kPsnMask;
  headers.bth.ack_req = wants_acknowledge(wqe);
  headers.bth.solicited = last && wqe.request.solicited && wqe.request.op == SendOp::kSend;
  if (first && wqe.request.op == SendOp::kWrite) {
    headers.reth = {wqe.request.remote_address, wqe.request.rkey, wqe.request.sge.length};
  }
  wire::finish_lengths(headers, length);
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  since_request_ = headers.bth.ack_req ? 0 : since_request_ + 1;
}

Packet* Requester::sent(Packet* packet, TimeNs now) {
  Wqe& wqe = queue_.at(cursor_);
  write_headers(wqe, packet, (next_ - wqe.first_psn) * qp_.attributes().path_mtu,
                packet->payload.length);
  ++packets_sent_;
  if (next_ < frontier_) ++packets_resent_;
  if (next_ == wqe.last_psn()) ++cursor_;
  ++next_;
  frontier_ = std::max(frontier_, next_);
  if (deadline_ == kNever) arm_timer(now);
  return packet;
}

// Go back: `psn` is the next to be sent.
void Requester::rewind(uint64_t psn) {
  assert(psn >= unacknowledged_ && psn <= frontier_);
  next_ = psn;
  cursor_ = queue_.head();
  while (cursor_ != queue_.tail()) {
    const Wqe& wqe = queue_.at(cursor_);
    if (wqe.packets == 0 || psn <= wqe.last_psn()) break;
    ++cursor_;
  }
  since_request_ = 0;
  failed_ = false;  // the failure, if it stands, is met again
  drop_fetch();
  qp_.make_requester_ready();
}

}  // namespace rocefs
