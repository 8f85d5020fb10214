#include "rdma/transport/requester.h"

#include <algorithm>
#include <cerrno>

#include "rdma/wire/psn.h"

namespace rocefs {

Requester::Requester(QpContext& qp, Congestion& congestion, size_t depth)
    : qp_(qp),
      congestion_(congestion),
      window_(qp, depth),
      ack_requests_(qp, window_, congestion),
      selective_(qp, window_),
      go_back_n_(qp, window_, ack_requests_, selective_, prefetch_, congestion),
      completer_(qp, window_, selective_, go_back_n_, congestion) {}

void Requester::start(uint32_t psn) {
  window_.start(psn);
  selective_.start();
  completer_.start();
}

Result<void> Requester::post(const SendRequest& request) {
  if (window_.full()) return Error{ENOMEM, "the send queue is full"};
  window_.push(request);
  if (qp_.state() == QpState::kError || qp_.state() == QpState::kSqe) {
    flush();
  } else {
    qp_.make_data_ready();
  }
  return {};
}

// A draining send queue goes on only with requests that have begun.
bool Requester::may_begin(const SendWqe& wqe) const {
  if (wqe.begun) return true;
  if (qp_.state() != QpState::kRts) return false;
  return !wqe.request.fence || window_.rd_atomics_begun() == 0;
}

bool Requester::may_send(const SendWqe& wqe, TimeNs now) {
  if (!qp_.reliable()) return true;
  if (window_.next() - window_.unacked() >= window_.limit()) return false;
  if (congestion_.has_window() && !window_allows(wqe, congestion_.window(now))) {
    congestion_.note_closed();
    return false;
  }
  if (!wqe.awaits_response()) return true;
  // A request that has begun must be able to end, even when max_rd_atomic is 0.
  return window_.rd_atomics_sent() < std::max<uint32_t>(1, qp_.attributes().max_rd_atomic) &&
         wqe.end_psn() - window_.unacked() <= kPsnHalf;
}

// One packet may always be in flight. When the window has shrunk, there may be packets in flight
// none of which asks for an acknowledgement: one more goes, which asks.
bool Requester::window_allows(const SendWqe& wqe, uint32_t window) {
  if (wqe.awaits_response() || ack_requests_.unasked()) return true;
  uint64_t in_flight = window_.octets_in_flight(wqe);
  uint64_t length =
      window_.octets_before(wqe, window_.next() + 1) - window_.octets_before(wqe, window_.next());
  return in_flight == 0 || in_flight + length <= window;
}

PacketPtr Requester::emit(TimeNs now) {
  if (!qp_.sends()) return nullptr;
  switch (window_.state) {
    case RequesterState::kRnrWait:
    case RequesterState::kFailed:
      return nullptr;
    case RequesterState::kBlocked:
    case RequesterState::kSending:
      break;
  }
  if (PacketPtr packet = emit_retransmission(now)) return packet;
  return emit_new(now);
}

// The next packet that has not been sent since the start, or since going back.
PacketPtr Requester::emit_new(TimeNs now) {
  while (qp_.sends() && window_.state == RequesterState::kSending && !window_.at_end()) {
    const SendWqe& wqe = window_.current();
    if (!may_begin(wqe)) return nullptr;
    if (!wqe.begun && !begin(wqe)) continue;
    if (wqe.packets == 0) {  // a local request, which is done
      window_.skip();
      completer_.complete_finished();
      continue;
    }
    if (!may_send(wqe, now)) return nullptr;
    if (qp_.type() == QpType::kUd && !qp_.ensure_queued(wqe.request.path)) return nullptr;
    return build(wqe, now);
  }
  return nullptr;
}

// Emits the next packet to be retransmitted alone; null when there is none now. If its payload
// cannot be fetched, everything is sent again, and the failure is found in its turn.
PacketPtr Requester::emit_retransmission(TimeNs now) {
  uint64_t position = 0;
  std::optional<SelectiveRepeat::Retransmission> next = selective_.next(position);
  if (!next) return nullptr;
  const SendWqe& wqe = window_.at(position);
  PacketPtr packet;
  if (!wqe.sends_payload()) {
    packet = qp_.host().pool().acquire();
  } else {
    Prefetch::State state = selective_.fetch(wqe, position, next->psn, packet);
    if (state == Prefetch::State::kFailed) go_back_n_.rewind(window_.unacked());
    if (state != Prefetch::State::kReady) return nullptr;
  }
  congestion_.note_retransmission();
  write_headers(wqe, {next->psn, next->end, true}, *packet, now);
  selective_.sent(*next);
  ++packets_sent_;
  ++packets_resent_;
  qp_.port().counters().sr_retrans.add();
  completer_.packet_sent(now);
  return packet;
}

// Begins a request; false when it has failed.
bool Requester::begin(const SendWqe& wqe) {
  WcStatus status = check(wqe);
  if (status != WcStatus::kSuccess) {
    fail_current(status);
    return false;
  }
  window_.begin();
  return true;
}

// Checks a request for errors that the near end can see; executes a local request.
WcStatus Requester::check(const SendWqe& wqe) {
  const SendRequest& request = wqe.request;
  // A single packet's memory is checked when the packet is built, which follows at once.
  const bool one_packet = wqe.sends_payload() && wqe.length <= qp_.attributes().path_mtu;
  if (one_packet && wqe.plain && qp_.reliable()) return WcStatus::kSuccess;
  if (request.malformed) return WcStatus::kLocalQpOperationError;
  if (wqe.is_local()) {
    return run_local(wqe) ? WcStatus::kSuccess : WcStatus::kWindowBindError;
  }
  uint64_t longest = qp_.type() == QpType::kUd ? qp_.port().mtu() : kMaxMessage;
  if (wqe.length > longest || (wqe.has(ROCEFS_EIGHT_OCTETS) && wqe.length != 8))
    return WcStatus::kLocalLengthError;
  if (wqe.awaits_response() && qp_.attributes().max_rd_atomic == 0) {
    return WcStatus::kLocalQpOperationError;
  }
  if (one_packet) return WcStatus::kSuccess;
  uint8_t access = wqe.takes_data() ? kLocalWrite : 0;
  bool allowed = entries_allowed(qp_.mover(*this, access), request.sges.entries());
  return allowed ? WcStatus::kSuccess : WcStatus::kLocalProtectionError;
}

bool Requester::run_local(const SendWqe& wqe) {
  const SendRequest& request = wqe.request;
  MemoryTable& table = qp_.host().memory();
  if (request.op == SendOp::kLocalInvalidate) return table.invalidate(request.rkey, qp_.number());
  if (request.sges.entries().size() != 1) return false;
  const Sge& part = request.sges.entries()[0];
  return table.bind({request.rkey, part.lkey, part.address, part.length, request.bind_access},
                    qp_.pd(), qp_.number());
}

Moved Requester::fetch(const SendWqe& wqe, uint64_t offset, Packet& packet) {
  return gather(qp_.mover(*this, 0), wqe.request.sges.entries(), offset,
                window_.payload_length(wqe, offset), packet, prefetch_.ticket());
}

// Builds the next packet; null when it cannot go now.
PacketPtr Requester::build(const SendWqe& wqe, TimeNs now) {
  PacketPtr packet = wqe.sends_payload() ? take_payload(wqe) : qp_.host().pool().acquire();
  if (packet) sent(*packet, now);
  return packet;
}

// Makes a packet whose payload is a reference; null if the memory does not answer at once.
inline PacketPtr Requester::refer(const SendWqe& wqe, uint64_t offset) {
  const Sge& entry = wqe.request.sges.entries()[0];
  const Sge part{entry.address + offset, window_.payload_length(wqe, offset), entry.lkey};
  const MemoryTable& table = qp_.host().memory();
  const MemoryRegion* region =
      table.allow(part.lkey, qp_.pd(), qp_.number(), 0, part.address, part.length);
  if (!region || !region->direct) return {};
  PacketPtr packet = qp_.host().pool().acquire();
  packet->payload = reference(table, part, *region);
  return packet;
}

// Takes a packet with the next payload. Null when it is still being fetched, or the request has
// failed.
PacketPtr Requester::take_payload(const SendWqe& wqe) {
  const uint64_t offset = (window_.next() - wqe.first_psn) * qp_.attributes().path_mtu;
  PacketPtr packet;
  if (wqe.plain && prefetch_.empty()) packet = refer(wqe, offset);
  if (packet) return packet;
  const Prefetch::Key key{window_.cursor(), offset};
  switch (prefetch_.state(key)) {
    case Prefetch::State::kPending:
      return packet;
    case Prefetch::State::kReady:
      packet = prefetch_.take();
      if (prefetch_.low()) fetch_more();
      return packet;
    case Prefetch::State::kFailed:
      prefetch_.drop();
      fail_current(WcStatus::kLocalProtectionError);
      return packet;
    case Prefetch::State::kAbsent:
      break;
  }
  if (prefetch_.full()) return packet;
  packet = qp_.host().pool().acquire();
  Moved moved = fetch(wqe, key.offset, *packet);
  if (moved.pending > 0) {
    prefetch_.drop();
    prefetch_at_ = {key.message, key.offset + packet->payload.length};
    prefetch_.add(std::move(packet), key, moved);
    fetch_more();
  } else if (moved.failed) {
    packet.reset();
    fail_current(WcStatus::kLocalProtectionError);
  }
  return packet;
}

// Fetches ahead. A fenced request may send bytes that a READ before it brings, so it is fetched in
// its turn.
void Requester::fetch_more() {
  PacketPool& pool = qp_.host().pool();
  while (prefetch_.wants_more() && window_.holds(prefetch_at_.message)) {
    const SendWqe& wqe = window_.at(prefetch_at_.message);
    if (!wqe.begun && wqe.request.fence) return;
    bool carries = wqe.sends_payload() && !wqe.request.malformed &&
                   wqe.length <= (qp_.type() == QpType::kUd ? qp_.port().mtu() : kMaxMessage);
    if (carries && prefetch_at_.offset < wqe.length) {
      PacketPtr packet = pool.acquire();
      Moved moved = fetch(wqe, prefetch_at_.offset, *packet);
      if (moved.pending > 0) {
        uint64_t length = packet->payload.length;
        prefetch_.add(std::move(packet), prefetch_at_, moved);
        prefetch_at_.offset += length;
        continue;
      }
      if (moved.failed) return;  // the failure is found in its turn
    }
    prefetch_at_ = {prefetch_at_.message + 1, 0};
  }
}

void Requester::memory_done(uint64_t ticket, bool ok) {
  prefetch_.done(ticket, ok);
  if (qp_.sends() && (prefetch_.settled() || prefetch_.empty())) qp_.make_data_ready();
  qp_.memory_settled();
}

// Fails the current request. If the newest message must first be sent again, to ask for its
// acknowledgement, the failure is found again after it.
void Requester::fail_current(WcStatus status) {
  if (!go_back_n_.request_ack_again()) completer_.fail_current(status);
}

// Fills the extension headers of a request packet. A READ that is partly answered asks for the
// missing part.
void Requester::fill_extensions(const SendWqe& wqe, const wire::OpcodeInfo& info, const Part& part,
                                wire::Extensions& out) {
  const SendRequest& request = wqe.request;
  uint64_t mtu = qp_.attributes().path_mtu;
  uint64_t offset = wqe.sends_payload() ? 0 : (part.psn - wqe.first_psn) * mtu;
  uint64_t length = wqe.length - offset;
  if (!wqe.sends_payload()) length = std::min(length, (part.end - part.psn) * mtu);
  if (info.has_xrceth) out.xrc = {0, request.remote_srqn};
  if (info.has_reth) {
    out.reth = {request.remote_address + offset, request.rkey, static_cast<uint32_t>(length)};
  }
  if (info.has_atomic_eth) {
    out.atomic = {request.remote_address, request.rkey, request.swap_add, request.compare};
  }
  if (info.has_deth) {
    // IBTA 10.2.5: in a request a controlled Q_Key stands for the queue pair's own.
    out.deth = {is_controlled_qkey(request.qkey) ? qp_.attributes().qkey : request.qkey, 0,
                qp_.number()};
  }
  out.imm = request.immediate;
  out.ieth = {request.rkey};
}

void Requester::write_headers(const SendWqe& wqe, const Part& part, Packet& packet, TimeNs now) {
  const SendRequest& request = wqe.request;
  bool first = part.psn == wqe.first_psn;
  bool last = wqe.awaits_response() || part.psn + 1 == wqe.end_psn();
  wire::HeaderTemplate::Fields fields;
  fields.opcode = send_op_info(request.op).opcode(qp_.type(), first, last);
  const wire::OpcodeInfo& info = wire::opcode_info(fields.opcode);
  fields.psn = static_cast<uint32_t>(part.psn) & kPsnMask;
  fields.ack_req = part.acknowledge;
  fields.sr_capable = qp_.sr_capable();
  fields.solicited = last && request.solicited && wqe.has(ROCEFS_RECEIVE);
  fields.port_offset = qp_.next_port_offset(now);
  if (info.header_len > 0) fill_extensions(wqe, info, part, qp_.extensions());
  if (qp_.reliable() && wqe.sends_payload()) {
    QpEvents& events = congestion_.events();
    fields.option_len = static_cast<uint8_t>(events.option_len());
    if (fields.option_len > 0 && !events.begun()) events.begin(window_.octets_acknowledged());
  }
  if (qp_.type() == QpType::kUd) {
    wire::Headers to = qp_.headers_to(request.path, request.remote_qpn);
    congestion_.set_traffic_class(to.is_ipv6 ? to.v6.traffic_class : to.v4.tos);
    fields.ecn = congestion_.ecn();
    wire::HeaderTemplate base(to);
    qp_.write_headers(base, fields, packet);
  } else {
    fields.ecn = congestion_.ecn();
    qp_.write_headers(fields, packet);
    if (fields.option_len > 0) QpEvents::add_options(packet, fields.option_len, now);
  }
}

void Requester::sent(Packet& packet, TimeNs now) {
  SendWqe& wqe = window_.current();
  uint64_t psn = window_.next(), position = window_.cursor();
  bool again = psn < window_.max_sent();
  bool acknowledge = ack_requests_.wanted(wqe, now);
  write_headers(wqe, {psn, wqe.end_psn(), acknowledge}, packet, now);
  if (acknowledge && !again) congestion_.request_sent(psn, now);
  ++packets_sent_;
  packets_resent_ += again;
  bool ends_message = window_.packet_sent();
  if (qp_.reliable()) {
    completer_.packet_sent(now);
    ack_requests_.packet_sent(acknowledge, ends_message, now);
  } else {
    ++wqe.in_flight;
    packet.listener = &qp_.host();
    packet.sender = {qp_.number(), qp_.serial(), static_cast<uint32_t>(position)};
  }
}

void Requester::packet_gone(uint32_t low_bits) {
  uint64_t head = window_.head();
  uint64_t position = head + (low_bits - static_cast<uint32_t>(head));
  if (!window_.holds(position)) return;  // flushed
  --window_.at(position).in_flight;
  completer_.complete_finished();
}

void Requester::drain() {
  bool between = window_.at_end() || !window_.current().begun;
  if (between) go_back_n_.request_ack_again();
}

void Requester::flush() {
  prefetch_.drop();
  selective_.reset();
  completer_.flush();
}

void Requester::reset() {
  prefetch_.drop();
  selective_.reset();
  selective_.forget_agreement();
  completer_.reset();
  window_.clear();
  ack_requests_.reset();
}

}  // namespace rocefs
