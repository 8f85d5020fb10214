#include "rdma/transport/replies.h"

#include <algorithm>

#include "rdma/transport/qp.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Replies::Replies(Qp& qp) : qp_(qp), ahead_(qp.host().pool()) {}

bool Replies::admit(const Resource& resource, uint32_t& slot) {
  if (resources_.empty()) resources_.resize(qp_.attributes().max_dest_rd_atomic);
  if (resources_.empty()) return false;
  Resource& oldest = resources_[oldest_];
  if (oldest.sent_end != oldest.end_psn) return false;
  // Whoever sends a new one has its answer: another copy is wanted no more.
  if (!due_.empty() && due_.front().slot == oldest_) ahead_.drop();
  std::erase_if(due_, [&](const Due& due) { return due.slot == oldest_; });
  oldest = resource;
  slot = oldest_;
  oldest_ = (oldest_ + 1) % static_cast<uint32_t>(resources_.size());
  return true;
}

void Replies::answer(uint32_t slot) {
  Resource& resource = resources_[slot];
  resource.ready = true;
  due_.push_back({slot, resource.first_psn, resource.first_psn, resource.end_psn});
  qp_.make_data_ready();
}

void Replies::replay(uint64_t psn, uint64_t end) {
  for (uint32_t slot = 0; slot < resources_.size(); ++slot) {
    const Resource& resource = resources_[slot];
    if (!resource.ready || psn < resource.first_psn || psn >= resource.end_psn) continue;
    if (end < resource.end_psn) return replay_part(slot, psn, end);
    auto due = std::find_if(due_.begin(), due_.end(), [&](const Due& one) {
      return one.slot == slot && one.end == resource.end_psn;
    });
    if (due != due_.end() && due->next <= psn) return;  // it will come
    if (due == due_.end()) {
      auto later = std::find_if(due_.begin(), due_.end(), [&](const Due& one) {
        return resources_[one.slot].first_psn > resource.first_psn;
      });
      due = due_.insert(later, {slot, psn, psn, resource.end_psn});
    }
    due->begin = due->next = psn;
    if (due == due_.begin()) ahead_.drop();
    return qp_.make_data_ready();
  }
}

// The far end asks for what it has not got of a response: before everything else, since it is
// older.
void Replies::replay_part(uint32_t slot, uint64_t psn, uint64_t end) {
  constexpr size_t kMostParts = 128;  // the far end asks again for what is beyond
  for (const Due& one : due_) {
    if (one.slot == slot && one.next <= psn && end <= one.end) return;  // it will come
  }
  if (due_.size() >= kMostParts) return;
  auto later = std::find_if(due_.begin(), due_.end(), [&](const Due& one) {
    return one.end == resources_[one.slot].end_psn || one.next > psn;
  });
  bool first = later == due_.begin();
  due_.insert(later, {slot, psn, psn, end});
  if (first) ahead_.drop();
  qp_.make_data_ready();
}

void Replies::clear() {
  drop_due();
  resources_.clear();
  oldest_ = 0;
}

void Replies::drop_due() {
  due_.clear();
  ahead_.drop();
}

Packet* Replies::emit() {
  if (due_.empty()) return nullptr;
  const Due& due = due_.front();
  bool read = resources_[due.slot].read;
  Packet* packet = read ? emit_read(due) : qp_.host().pool().acquire();
  return packet ? finish(packet) : nullptr;
}

Moved Replies::fetch(const Resource& resource, uint64_t psn, Packet* packet) {
  uint64_t mtu = qp_.attributes().path_mtu;
  uint64_t offset = (psn - resource.first_psn) * mtu;
  Sge whole{resource.address, static_cast<uint32_t>(resource.length), resource.rkey};
  return gather(qp_.mover(*this, kRemoteRead), {&whole, 1}, offset,
                static_cast<uint32_t>(std::min(mtu, resource.length - offset)), packet,
                ahead_.ticket());
}

Packet* Replies::emit_read(const Due& due) {
  const Resource& resource = resources_[due.slot];
  PacketPool& pool = qp_.host().pool();
  FetchAhead::Key key{resource.first_psn, due.next};
  switch (ahead_.state(key)) {
    case FetchAhead::State::kPending:
      return nullptr;
    case FetchAhead::State::kReady: {
      Packet* packet = ahead_.take();
      if (ahead_.low()) fetch_more();
      return packet;
    }
    case FetchAhead::State::kFailed:
      refuse();
      return nullptr;
    case FetchAhead::State::kAbsent:
      break;
  }
  if (ahead_.full()) return nullptr;
  Packet* packet = pool.acquire();
  Moved moved = fetch(resource, due.next, packet);
  if (moved.pending > 0) {
    ahead_.drop();
    ahead_.add(packet, key, moved);
    ahead_psn_ = due.next + 1;
    fetch_more();
    return nullptr;
  }
  if (!moved.failed) return packet;
  pool.release(packet);
  refuse();
  return nullptr;
}

void Replies::fetch_more() {
  PacketPool& pool = qp_.host().pool();
  for (const Due& due : due_) {
    const Resource& resource = resources_[due.slot];
    if (!resource.read || resource.length == 0) continue;
    for (uint64_t psn = std::max(due.next, ahead_psn_); psn < due.end; ++psn) {
      if (!ahead_.wants_more()) return;
      Packet* packet = pool.acquire();
      Moved moved = fetch(resource, psn, packet);
      if (moved.pending == 0) return pool.release(packet);  // it is met again in its turn
      ahead_.add(packet, {resource.first_psn, psn}, moved);
      ahead_psn_ = psn + 1;
    }
  }
}

// The memory has gone since the request came.
void Replies::refuse() {
  uint64_t psn = due_.front().next;
  drop_due();
  qp_.responder().refuse_read(psn);
}

Packet* Replies::finish(Packet* packet) {
  Due& due = due_.front();
  Resource& resource = resources_[due.slot];
  write_headers(packet, due);
  ++due.next;
  resource.sent_end = std::max(resource.sent_end, due.next);
  if (due.next == due.end) due_.erase(due_.begin());
  if (due_.empty()) qp_.make_acknowledge_ready();  // acknowledgements had to wait
  return packet;
}

void Replies::write_headers(Packet* packet, const Due& due) {
  const Resource& resource = resources_[due.slot];
  bool first = due.next == due.begin, last = due.next + 1 == due.end;
  wire::HeaderTemplate::Fields fields;
  fields.reserved6 = qp_.selective_bit();
  fields.psn = static_cast<uint32_t>(due.next) & kPsnMask;
  if (resource.read) fields.port_offset = qp_.next_port_offset(qp_.scheduler().now());
  using wire::Opcode;
  if (!resource.read) {
    fields.opcode = Opcode::kRcAtomicAck;
  } else if (first) {
    fields.opcode = last ? Opcode::kRcReadResponseOnly : Opcode::kRcReadResponseFirst;
  } else {
    fields.opcode = last ? Opcode::kRcReadResponseLast : Opcode::kRcReadResponseMiddle;
  }
  if (resource.read) fields.ecn = qp_.congestion().ecn();
  qp_.extensions().aeth = {aeth::kAckUnlimited, resource.messages};
  qp_.extensions().atomic_ack = {resource.original};
  qp_.write_headers(fields, packet);
}

void Replies::memory_done(uint64_t ticket, bool ok) {
  ahead_.done(ticket, ok);
  if (!due_.empty() && (ahead_.settled() || ahead_.empty())) qp_.make_data_ready();
  qp_.memory_settled();
}

}  // namespace rocefs
