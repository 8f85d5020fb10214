#include "rdma/transport/requester.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "rdma/transport/qp.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Requester::Requester(Qp& qp, size_t depth)
    : qp_(qp),
      queue_(depth),
      prefetch_(qp.host().pool()),
      timer_(event_of<&Requester::on_timeout>(this)),
      rnr_timer_(event_of<&Requester::on_rnr_wait_over>(this)) {}

Requester::~Requester() {
  qp_.host().outstanding().requests -= static_cast<int64_t>(queue_.size());
}

void Requester::start(uint32_t psn) {
  unacked_psn_ = next_psn_ = max_sent_psn_ = kPsnBase + psn;
  agreement_.forget();
  selective_mode_ = false;
  reset_selective();
  retries_left_ = qp_.attributes().retry_count;
  rnr_retries_left_ = qp_.attributes().rnr_retry;
}

Result<void> Requester::post(const SendRequest& request) {
  if (queue_.full()) return Error{ENOMEM, "the send queue is full"};
  Wqe& wqe = queue_.claim();
  wqe.length = request.sges.length();
  wqe.first_psn = wqe.packets = 0;
  wqe.begun = false;
  wqe.failure = WcStatus::kSuccess;
  wqe.placing = wqe.in_flight = 0;
  wqe.request = request;
  ++qp_.host().outstanding().requests;
  if (qp_.state() == QpState::kError || qp_.state() == QpState::kSqe) {
    flush();
  } else {
    qp_.make_data_ready();
  }
  return {};
}

// While the send queue drains, only what has begun goes on.
bool Requester::may_begin(const Wqe& wqe) const {
  if (wqe.begun) return true;
  if (qp_.state() != QpState::kRts) return false;
  return !wqe.request.fence || rd_atomics_begun_ == 0;
}

bool Requester::may_send(const Wqe& wqe, TimeNs now) {
  if (qp_.type() != QpType::kRc) return true;
  if (next_psn_ - unacked_psn_ >= qp_.attributes().window) return false;
  Congestion& congestion = qp_.congestion();
  if (congestion.has_window() && !window_allows(wqe, congestion.window(now))) return false;
  if (!wqe.awaits_response()) return true;
  // One that has begun must be able to end, even when no further one is allowed.
  return rd_atomics_sent_ < std::max<uint32_t>(1, qp_.attributes().max_rd_atomic) &&
         wqe.end_psn() - unacked_psn_ <= kPsnHalf;
}

// How many octets requests have sent before this PSN, which is one of the request's; a READ or an
// atomic sends none.
uint64_t Requester::octets_before(const Wqe& wqe, uint64_t psn) const {
  if (wqe.awaits_response()) return wqe.first_octet;
  return wqe.first_octet + std::min(wqe.length, (psn - wqe.first_psn) * qp_.attributes().path_mtu);
}

// Sent and not acknowledged, when `wqe` is the request at the cursor.
uint64_t Requester::octets_in_flight(const Wqe& wqe) {
  if (next_psn_ == unacked_psn_) return 0;
  const Wqe& oldest = queue_.at(position_of(unacked_psn_));
  return octets_before(wqe, next_psn_) - octets_before(oldest, unacked_psn_);
}

// One packet always may be in flight. When the window has shrunk, packets may be in flight of which
// none asks for an acknowledgement: one more goes, which does.
bool Requester::window_allows(const Wqe& wqe, uint32_t window) {
  if (wqe.awaits_response() || since_ack_request_ > 0) return true;
  uint64_t in_flight = octets_in_flight(wqe);
  uint64_t length = octets_before(wqe, next_psn_ + 1) - octets_before(wqe, next_psn_);
  return in_flight == 0 || in_flight + length <= window;
}

Packet* Requester::emit(TimeNs now) {
  if (selective_ && !selective_->retransmissions.empty()) {
    if (Packet* packet = emit_retransmission(now)) return packet;
  }
  while (qp_.sends() && !rnr_waiting_ && !failed_ && !doomed_ && cursor_ != queue_.tail()) {
    Wqe& wqe = queue_.at(cursor_);
    if (!may_begin(wqe)) return nullptr;
    if (!wqe.begun && !begin(wqe)) continue;
    if (wqe.packets == 0) {  // it is local, and done
      ++cursor_;
      complete_finished();
      continue;
    }
    if (!may_send(wqe, now)) return nullptr;
    if (qp_.type() == QpType::kUd && !qp_.ensure_queued(wqe.request.path)) return nullptr;
    return build(wqe, now);
  }
  return nullptr;
}

// False when it has failed.
bool Requester::begin(Wqe& wqe) {
  WcStatus status = check(wqe);
  if (status != WcStatus::kSuccess) {
    fail_at_cursor(status);
    return false;
  }
  wqe.begun = true;
  wqe.first_psn = next_psn_;
  wqe.first_octet = octets_begun_;
  if (!wqe.awaits_response() && !wqe.is_local()) octets_begun_ += wqe.length;
  if (wqe.is_local()) return true;
  bool one = qp_.type() == QpType::kUd || wqe.is_atomic();
  wqe.packets = one ? 1 : psns_of(wqe.length, qp_.attributes().path_mtu);
  rd_atomics_begun_ += wqe.awaits_response();
  return true;
}

// What the near end can see to be wrong, or does by itself.
WcStatus Requester::check(const Wqe& wqe) {
  const SendRequest& request = wqe.request;
  if (request.malformed) return WcStatus::kLocalQpOperationError;
  if (wqe.is_local()) {
    return run_local(wqe) ? WcStatus::kSuccess : WcStatus::kWindowBindError;
  }
  uint64_t longest = qp_.type() == QpType::kUd ? qp_.port().mtu() : kMaxMessage;
  if (wqe.length > longest || (wqe.is_atomic() && wqe.length != 8))
    return WcStatus::kLocalLengthError;
  if (wqe.awaits_response() && qp_.attributes().max_rd_atomic == 0) {
    return WcStatus::kLocalQpOperationError;
  }
  // What one packet carries is looked at when that is built, which is now.
  bool one_packet = !wqe.awaits_response() && wqe.length <= qp_.attributes().path_mtu;
  if (one_packet) return WcStatus::kSuccess;
  uint8_t access = wqe.awaits_response() ? kLocalWrite : 0;
  bool allowed = entries_allowed(qp_.mover(*this, access), request.sges.entries());
  return allowed ? WcStatus::kSuccess : WcStatus::kLocalProtectionError;
}

bool Requester::run_local(const Wqe& wqe) {
  const SendRequest& request = wqe.request;
  MemoryTable& table = qp_.host().memory();
  if (request.op == SendOp::kLocalInvalidate) return table.invalidate(request.rkey, qp_.number());
  if (request.sges.entries().size() != 1) return false;
  const Sge& part = request.sges.entries()[0];
  return table.bind({request.rkey, part.lkey, part.address, part.length, request.bind_access},
                    qp_.pd(), qp_.number());
}

uint32_t Requester::payload_length(const Wqe& wqe, uint64_t offset) const {
  uint64_t most = qp_.type() == QpType::kUd ? wqe.length : qp_.attributes().path_mtu;
  return static_cast<uint32_t>(std::min(most, wqe.length - offset));
}

Moved Requester::fetch(const Wqe& wqe, uint64_t offset, Packet* packet) {
  return gather(qp_.mover(*this, 0), wqe.request.sges.entries(), offset,
                payload_length(wqe, offset), packet, kPrefetchTicket | prefetch_.ticket());
}

// Null when the packet cannot go now: its bytes are on their way, or the request has failed.
Packet* Requester::build(const Wqe& wqe, TimeNs now) {
  PacketPool& pool = qp_.host().pool();
  if (wqe.awaits_response()) return sent(pool.acquire(), now);
  Prefetch::Key key{cursor_, (next_psn_ - wqe.first_psn) * qp_.attributes().path_mtu};
  switch (prefetch_.state(key)) {
    case Prefetch::State::kPending:
      return nullptr;
    case Prefetch::State::kReady: {
      Packet* packet = prefetch_.take();
      if (prefetch_.low()) fetch_more();
      return sent(packet, now);
    }
    case Prefetch::State::kFailed:
      prefetch_.drop();
      fail_at_cursor(WcStatus::kLocalProtectionError);
      return nullptr;
    case Prefetch::State::kAbsent:
      break;
  }
  if (prefetch_.full()) return nullptr;
  Packet* packet = pool.acquire();
  Moved moved = fetch(wqe, key.offset, packet);
  if (moved.pending > 0) {
    prefetch_.drop();
    prefetch_.add(packet, key, moved);
    prefetch_at_ = {key.message, key.offset + packet->payload.length};
    fetch_more();
    return nullptr;
  }
  if (!moved.failed) return sent(packet, now);
  pool.release(packet);
  fail_at_cursor(WcStatus::kLocalProtectionError);
  return nullptr;
}

// What is fenced may be of what a READ before it brings: it is fetched when its turn has come.
void Requester::fetch_more() {
  PacketPool& pool = qp_.host().pool();
  while (prefetch_.wants_more() && queue_.holds(prefetch_at_.message)) {
    const Wqe& wqe = queue_.at(prefetch_at_.message);
    if (!wqe.begun && wqe.request.fence) return;
    bool carries = !wqe.awaits_response() && !wqe.is_local() && !wqe.request.malformed &&
                   wqe.length <= (qp_.type() == QpType::kUd ? qp_.port().mtu() : kMaxMessage);
    if (carries && prefetch_at_.offset < wqe.length) {
      Packet* packet = pool.acquire();
      Moved moved = fetch(wqe, prefetch_at_.offset, packet);
      if (moved.pending > 0) {
        prefetch_.add(packet, prefetch_at_, moved);
        prefetch_at_.offset += packet->payload.length;
        continue;
      }
      pool.release(packet);
      if (moved.failed) return;  // it will be met again
    }
    prefetch_at_ = {prefetch_at_.message + 1, 0};
  }
}

void Requester::memory_done(uint64_t ticket, bool ok) {
  if (ticket & kPrefetchTicket) {
    Prefetch& fetch = ticket & kRetransmissionTicket ? selective_->fetch : prefetch_;
    fetch.done(ticket & ~(kPrefetchTicket | kRetransmissionTicket), ok);
    if (qp_.sends() && (fetch.settled() || fetch.empty())) qp_.make_data_ready();
  } else {
    placed(ticket, ok);
  }
  qp_.memory_settled();
}

// A request that cannot be sent ends when all before it have ended, so that these keep their true
// status.
void Requester::fail_at_cursor(WcStatus status) {
  if (request_ack_again()) return;  // the failure is met again
  failed_ = true;
  queue_.at(cursor_).failure = status;
  complete_finished();
}

namespace {

wire::Opcode opcode_of(QpType type, SendOp op, bool first, bool last) {
  using wire::Opcode;
  if (op == SendOp::kRead) return Opcode::kRcReadRequest;
  if (op == SendOp::kCompareSwap) return Opcode::kRcCmpSwap;
  if (op == SendOp::kFetchAdd) return Opcode::kRcFetchAdd;
  bool write = op == SendOp::kWrite || op == SendOp::kWriteImm;
  bool immediate = op == SendOp::kSendImm || op == SendOp::kWriteImm;
  if (type == QpType::kUd) return immediate ? Opcode::kUdSendOnlyImm : Opcode::kUdSendOnly;
  if (last && op == SendOp::kSendInvalidate) {
    return first ? Opcode::kRcSendOnlyInv : Opcode::kRcSendLastInv;
  }
  // Within a service: FIRST, MIDDLE, LAST, LAST with immediate, ONLY, ONLY with immediate.
  int base = (type == QpType::kUc ? 0x20 : 0) + (write ? 6 : 0);
  int part = first ? (last ? 4 : 0) : (last ? 2 : 1);
  return static_cast<Opcode>(base + part + (last && immediate ? 1 : 0));
}

}  // namespace

// What the request's packets say behind the BTH; a READ that is half answered asks for what is
// missing.
void Requester::fill_extensions(const Wqe& wqe, const Part& part, wire::Extensions& out) {
  const SendRequest& request = wqe.request;
  uint64_t mtu = qp_.attributes().path_mtu, offset = (part.psn - wqe.first_psn) * mtu;
  switch (request.op) {
    case SendOp::kWrite:
    case SendOp::kWriteImm:
      out.reth = {request.remote_address, request.rkey, static_cast<uint32_t>(wqe.length)};
      out.imm = request.immediate;
      break;
    case SendOp::kRead:
      out.reth = {
          request.remote_address + offset, request.rkey,
          static_cast<uint32_t>(std::min(wqe.length - offset, (part.end - part.psn) * mtu))};
      break;
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
      out.atomic = {request.remote_address, request.rkey, request.swap_add, request.compare};
      break;
    default:
      out.imm = request.immediate;
      out.ieth = {request.rkey};
      // IBTA 10.2.5: in a request a controlled Q_Key stands for the queue pair's own.
      out.deth = {is_controlled_qkey(request.qkey) ? qp_.attributes().qkey : request.qkey, 0,
                  qp_.number()};
      break;
  }
}

void Requester::write_headers(const Wqe& wqe, const Part& part, Packet* packet, TimeNs now) {
  const SendRequest& request = wqe.request;
  bool first = part.psn == wqe.first_psn;
  bool last = wqe.awaits_response() || part.psn + 1 == wqe.end_psn();
  bool consumes_receive = request.op != SendOp::kWrite && !wqe.awaits_response();
  wire::HeaderTemplate::Fields fields;
  fields.opcode = opcode_of(qp_.type(), request.op, first, last);
  fields.psn = static_cast<uint32_t>(part.psn) & kPsnMask;
  fields.ack_req = part.acknowledge;
  fields.reserved6 = qp_.selective_bit();
  fields.solicited = last && request.solicited && consumes_receive;
  fields.port_offset = qp_.next_port_offset(now);
  if (wire::opcode_info(fields.opcode).header_len > 0) {
    fill_extensions(wqe, part, qp_.extensions());
  }
  if (qp_.type() == QpType::kUd) {
    wire::Headers to = qp_.headers_to(request.path, request.remote_qpn);
    qp_.congestion().set_traffic_class(to.is_ipv6 ? to.v6.traffic_class : to.v4.tos);
    fields.ecn = qp_.congestion().ecn();
    wire::HeaderTemplate base(to);
    qp_.write_headers(base, fields, packet);
  } else {
    fields.ecn = qp_.congestion().ecn();
    qp_.write_headers(fields, packet);
  }
}

Packet* Requester::sent(Packet* packet, TimeNs now) {
  Wqe& wqe = queue_.at(cursor_);
  if (next_psn_ == unacked_psn_) ack_requested_at_ = now;
  bool acknowledge = wants_ack(wqe, now);
  write_headers(wqe, {next_psn_, wqe.end_psn(), acknowledge}, packet, now);
  if (acknowledge && next_psn_ >= max_sent_psn_) qp_.congestion().request_sent(next_psn_, now);
  since_ack_request_ = acknowledge ? 0 : since_ack_request_ + 1;
  ++packets_sent_;
  if (next_psn_ < max_sent_psn_) ++packets_resent_;
  next_psn_ = wqe.awaits_response() ? wqe.end_psn() : next_psn_ + 1;
  max_sent_psn_ = std::max(max_sent_psn_, next_psn_);
  uint64_t position = cursor_;
  if (next_psn_ == wqe.end_psn()) {
    ++cursor_;
    rd_atomics_sent_ += wqe.awaits_response();
  }
  if (qp_.type() == QpType::kRc) {
    if (deadline_ == kNever) arm_timer(now);
    if (acknowledge) {
      ack_requested_at_ = now;
      last_unacked_end_ = kNoPsn;
    } else if (next_psn_ == wqe.end_psn()) {
      last_unacked_end_ = next_psn_ - 1;
    }
  } else {
    ++wqe.in_flight;
    packet->sender = {&qp_.host(), qp_.number(), qp_.serial(), position};
  }
  return packet;
}

void Requester::packet_gone(uint64_t position) {
  if (!queue_.holds(position)) return;  // flushed
  --queue_.at(position).in_flight;
  complete_finished();
}

// Go back: `psn` is the next to be sent.
void Requester::rewind(uint64_t psn) {
  assert(psn >= unacked_psn_ && psn <= max_sent_psn_);
  if (failed_) queue_.at(cursor_).failure = WcStatus::kSuccess;
  failed_ = false;  // the failure, if it stands, is met again
  next_psn_ = psn;
  cursor_ = queue_.head();
  rd_atomics_sent_ = 0;
  while (cursor_ != queue_.tail()) {
    const Wqe& wqe = queue_.at(cursor_);
    if (!wqe.begun || psn < wqe.end_psn()) break;
    rd_atomics_sent_ += wqe.awaits_response();
    ++cursor_;
  }
  since_ack_request_ = 0;
  last_unacked_end_ = kNoPsn;
  qp_.congestion().note_retransmission();
  prefetch_.drop();
  drop_retransmissions();
  qp_.make_data_ready();
}

bool Requester::done(const Wqe& wqe) {
  if (cursor_ == queue_.head()) return false;  // not all of it is sent
  if (qp_.type() != QpType::kRc) return wqe.in_flight == 0;
  return wqe.end_psn() <= unacked_psn_;
}

// In the order in which they were posted.
void Requester::complete_finished() {
  complete_all_finished();
  if (qp_.state() == QpState::kSqd && drained()) qp_.raise(QpEvent::kDrained);
}

void Requester::complete_all_finished() {
  while (!queue_.empty() && queue_.front().placing == 0) {
    WcStatus failure = queue_.front().failure;
    if (failure != WcStatus::kSuccess) return fail_front(failure);
    if (!done(queue_.front())) return;
    complete_front(WcStatus::kSuccess);
    if (!qp_.sends()) return;
  }
}

// The oldest request ends in failure, and with it the connection; of UC and UD the sending half.
void Requester::fail_front(WcStatus status) {
  complete_front(status);
  if (qp_.type() == QpType::kRc) {
    qp_.enter_error();
  } else {
    qp_.enter_send_error();
  }
}

void Requester::complete_front(WcStatus status) {
  const Wqe& wqe = queue_.front();
  uint64_t wr_id = wqe.request.wr_id;
  WcOpcode opcode = completion_of(wqe.request.op);
  uint32_t byte_len = wqe.awaits_response() ? static_cast<uint32_t>(wqe.length) : 0;
  bool report = wqe.request.signaled || status != WcStatus::kSuccess;
  if (wqe.awaits_response() && wqe.begun) {
    --rd_atomics_begun_;
    if (cursor_ != queue_.head()) --rd_atomics_sent_;
    qp_.make_data_ready();  // one that had to wait for it may go
  }
  if (cursor_ == queue_.head()) ++cursor_;
  queue_.pop();
  --qp_.host().outstanding().requests;
  if (status == WcStatus::kFlushed) {
    qp_.port().counters().req_cqe_flush_error.add();
  } else if (status != WcStatus::kSuccess) {
    qp_.port().counters().req_cqe_error.add();
  }
  if (!report) return;
  Completion* completion = qp_.send_cq().claim();
  if (!completion) {
    qp_.raise(QpEvent::kFatal);
    return qp_.enter_error();
  }
  completion->wr_id = wr_id;
  completion->status = status;
  completion->opcode = opcode;
  completion->byte_len = byte_len;
  completion->qpn = qp_.number();
  qp_.send_cq().publish(false);
}

// What memory still takes of a response ends first: the buffer is the consumer's again then.
void Requester::flush() {
  deadline_ = kNever;
  rnr_waiting_ = false;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().cancel(rnr_timer_);
  prefetch_.drop();
  reset_selective();
  while (!queue_.empty() && queue_.front().placing == 0) complete_front(WcStatus::kFlushed);
  if (queue_.empty()) failed_ = doomed_ = false;
}

void Requester::reset() {
  deadline_ = kNever;
  qp_.scheduler().cancel(timer_);
  qp_.scheduler().cancel(rnr_timer_);
  prefetch_.drop();
  reset_selective();
  agreement_.forget();
  qp_.host().outstanding().requests -= static_cast<int64_t>(queue_.size());
  while (!queue_.empty()) queue_.pop();
  cursor_ = queue_.tail();
  rd_atomics_begun_ = rd_atomics_sent_ = since_ack_request_ = 0;
  last_unacked_end_ = forced_ack_psn_ = kNoPsn;
  rnr_waiting_ = failed_ = doomed_ = implied_nak_seen_ = false;
}

}  // namespace rocefs
