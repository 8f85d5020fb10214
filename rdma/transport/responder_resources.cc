#include "rdma/transport/responder_resources.h"

#include <algorithm>

#include "rdma/transport/qp_context.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {

ResponderResources::ResponderResources(QpContext& qp, Congestion& congestion)
    : qp_(qp), congestion_(congestion) {}

bool ResponderResources::admit(const Resource& resource, uint32_t& slot) {
  if (oldest_ == 0 && slots_.size() < qp_.attributes().max_dest_rd_atomic) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(resource);
    return true;
  }
  if (slots_.empty()) return false;
  Resource& oldest = slots_[oldest_];
  if (oldest.sent_end != oldest.end_psn) return false;
  // A far end that sends a new request has this one's answer: a further copy is not wanted.
  if (!pending_.empty() && pending_.front().slot == oldest_) prefetch_.drop();
  std::erase_if(pending_, [&](const PendingResponse& due) { return due.slot == oldest_; });
  oldest = resource;
  slot = oldest_;
  oldest_ = (oldest_ + 1) % static_cast<uint32_t>(slots_.size());
  return true;
}

void ResponderResources::answer(uint32_t slot) {
  Resource& resource = slots_[slot];
  resource.ready = true;
  pending_.push_back({slot, resource.first_psn, resource.first_psn, resource.end_psn});
  qp_.make_data_ready();
}

void ResponderResources::replay(uint64_t psn, uint64_t end) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Resource& resource = slots_[slot];
    if (!resource.ready || psn < resource.first_psn || psn >= resource.end_psn) continue;
    if (end < resource.end_psn) return replay_part(slot, psn, end);
    auto due = std::find_if(pending_.begin(), pending_.end(), [&](const PendingResponse& one) {
      return one.slot == slot && one.end == resource.end_psn;
    });
    if (due != pending_.end() && due->next <= psn) return;  // its answer is due already
    if (due == pending_.end()) {
      auto later = std::find_if(pending_.begin(), pending_.end(), [&](const PendingResponse& one) {
        return slots_[one.slot].first_psn > resource.first_psn;
      });
      due = pending_.insert(later, {slot, psn, psn, resource.end_psn});
    }
    due->begin = due->next = psn;
    if (due == pending_.begin()) prefetch_.drop();
    return qp_.make_data_ready();
  }
}

// Schedules a part of a response that the far end is missing: before all whole responses, since it
// is older.
void ResponderResources::replay_part(uint32_t slot, uint64_t psn, uint64_t end) {
  constexpr size_t kMaxParts = 1024;  // the far end asks again for parts beyond
  for (const PendingResponse& one : pending_) {
    if (one.slot == slot && one.next <= psn && end <= one.end) return;  // the part is due already
  }
  if (pending_.size() >= kMaxParts) return;
  auto later = std::find_if(pending_.begin(), pending_.end(), [&](const PendingResponse& one) {
    return one.end == slots_[one.slot].end_psn || one.next > psn;
  });
  bool first = later == pending_.begin();
  pending_.insert(later, {slot, psn, psn, end});
  if (first) prefetch_.drop();
  qp_.make_data_ready();
}

void ResponderResources::clear() {
  drop_pending();
  slots_.clear();
  oldest_ = 0;
}

void ResponderResources::drop_pending() {
  pending_.clear();
  prefetch_.drop();
}

PacketPtr ResponderResources::emit() {
  if (pending_.empty()) return nullptr;
  const PendingResponse& due = pending_.front();
  bool read = slots_[due.slot].read;
  PacketPtr packet = read ? emit_read(due) : qp_.host().pool().acquire();
  if (packet) finish(*packet);
  return packet;
}

Moved ResponderResources::fetch(const Resource& resource, uint64_t psn, Packet& packet) {
  uint64_t mtu = qp_.attributes().path_mtu;
  uint64_t offset = (psn - resource.first_psn) * mtu;
  Sge whole{resource.address, resource.length, resource.rkey};
  return gather(qp_.mover(*this, kRemoteRead, resource.pd), {&whole, 1}, offset,
                static_cast<uint32_t>(std::min<uint64_t>(mtu, resource.length - offset)), packet,
                prefetch_.ticket());
}

PacketPtr ResponderResources::emit_read(const PendingResponse& due) {
  const Resource& resource = slots_[due.slot];
  PacketPool& pool = qp_.host().pool();
  Prefetch::Key key{resource.first_psn, due.next};
  switch (prefetch_.state(key)) {
    case Prefetch::State::kPending:
      return nullptr;
    case Prefetch::State::kReady: {
      PacketPtr packet = prefetch_.take();
      if (prefetch_.low()) fetch_more();
      return packet;
    }
    case Prefetch::State::kFailed:
      fail();
      return nullptr;
    case Prefetch::State::kAbsent:
      break;
  }
  if (prefetch_.full()) return nullptr;
  PacketPtr packet = pool.acquire();
  Moved moved = fetch(resource, due.next, *packet);
  if (moved.pending > 0) {
    prefetch_.drop();
    prefetch_.add(std::move(packet), key, moved);
    prefetch_psn_ = due.next + 1;
    fetch_more();
    return nullptr;
  }
  if (!moved.failed) return packet;
  fail();
  return nullptr;
}

void ResponderResources::fetch_more() {
  PacketPool& pool = qp_.host().pool();
  for (const PendingResponse& due : pending_) {
    const Resource& resource = slots_[due.slot];
    if (!resource.read || resource.length == 0) continue;
    for (uint64_t psn = std::max(due.next, prefetch_psn_); psn < due.end; ++psn) {
      if (!prefetch_.wants_more()) return;
      PacketPtr packet = pool.acquire();
      Moved moved = fetch(resource, psn, *packet);
      if (moved.pending == 0) return;  // fetched again in its turn
      prefetch_.add(std::move(packet), {resource.first_psn, psn}, moved);
      prefetch_psn_ = psn + 1;
    }
  }
}

// Drops the responses that are due: the memory has gone since the request came.
void ResponderResources::fail() {
  failed_psn_ = pending_.front().next;
  drop_pending();
}

void ResponderResources::finish(Packet& packet) {
  PendingResponse& due = pending_.front();
  Resource& resource = slots_[due.slot];
  write_headers(packet, due);
  ++due.next;
  resource.sent_end = std::max(resource.sent_end, due.next);
  if (due.next == due.end) pending_.erase(pending_.begin());
  if (pending_.empty()) qp_.make_acknowledge_ready();  // acknowledgements had to wait
}

void ResponderResources::write_headers(Packet& packet, const PendingResponse& due) {
  const Resource& resource = slots_[due.slot];
  bool first = due.next == due.begin, last = due.next + 1 == due.end;
  wire::HeaderTemplate::Fields fields;
  fields.sr_capable = qp_.sr_capable();
  fields.psn = static_cast<uint32_t>(due.next) & kPsnMask;
  if (resource.read) fields.port_offset = qp_.next_port_offset(qp_.scheduler().now());
  using wire::Opcode;
  if (!resource.read) {
    fields.opcode = resource.answer;
  } else if (first) {
    fields.opcode = last ? Opcode::kRcReadResponseOnly : Opcode::kRcReadResponseFirst;
  } else {
    fields.opcode = last ? Opcode::kRcReadResponseLast : Opcode::kRcReadResponseMiddle;
  }
  fields.opcode = qp_.opcode(fields.opcode);
  if (resource.read) fields.ecn = congestion_.ecn();
  qp_.extensions().aeth = {aeth::kAckUnlimited, resource.messages};
  qp_.extensions().atomic_ack = {resource.original};
  qp_.write_headers(fields, packet);
}

void ResponderResources::memory_done(uint64_t ticket, bool ok) {
  prefetch_.done(ticket, ok);
  if (!pending_.empty() && (prefetch_.settled() || prefetch_.empty())) qp_.make_data_ready();
  qp_.memory_settled();
}

}  // namespace rocefs
