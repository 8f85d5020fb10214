// What a reliable responder does with packets ahead of the expected PSN when selective
// retransmission is agreed.
#include <cassert>

#include "rdma/transport/qp.h"
#include "rdma/transport/responder.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Responder::Ahead::Ahead(Responder& responder)
    : kept(responder.qp_.host().pool()),
      missing(kMostNaks),
      timer(event_of<&Responder::on_hole_timer>(&responder)) {}

bool Responder::selective() const {
  return qp_.host().selective().enabled() && agreement_.agrees();
}

// Takes the packet.
void Responder::keep(Packet* packet, const wire::Transport& headers, uint64_t psn) {
  PacketPool& pool = qp_.host().pool();
  TimeNs now = qp_.scheduler().now();
  if (!ahead_) ahead_ = std::make_unique<Ahead>(*this);
  Ahead& ahead = *ahead_;
  ahead.holes.count_arrival();
  ahead.top = std::max(ahead.top, expected_);
  // As if the first one behind the gap had come: that it is one is known.
  bool beyond = psn - expected_ >= kMostAhead;
  if (beyond) psn = expected_ + 1;
  const wire::OpcodeInfo& info = headers.info();
  bool read = info.has_reth && !info.is_write;
  uint64_t psns = read ? psns_of(headers.reth().dma_len, qp_.attributes().path_mtu) : 1;
  if (psn > ahead.top) ahead.holes.note(ahead.top, psn, now, qp_.patience());
  if (beyond) {
    ahead.top = std::max(ahead.top, psn);
    pool.release(packet);
  } else if (ahead.kept.holds(psn)) {
    qp_.port().counters().duplicate_request.add();
    pool.release(packet);
  } else {
    ahead.holes.fill(psn, psn + psns, now);
    ahead.top = std::max(ahead.top, psn + psns);
    ahead.kept.keep({packet, psn, place_early(packet, headers, psn)}, expected_);
    qp_.port().counters().sr_ooo_placed.add();
  }
  ask_for_missing(now);
}

// A packet of the WRITE that is being received goes where its RETH says, if memory takes it at
// once.
bool Responder::place_early(Packet* packet, const wire::Transport& headers, uint64_t psn) {
  const wire::OpcodeInfo& info = headers.info();
  if (!message_.active || !message_.write || !info.is_write || info.first || info.only)
    return false;
  uint64_t mtu = qp_.attributes().path_mtu, offset = (psn - expected_) * mtu;
  if (offset >= message_.remaining) return false;
  uint64_t left = message_.remaining - offset;
  if (headers.payload_len() != std::min(mtu, left) || info.last != (left <= mtu)) return false;
  const Sge& target = message_.target.entries()[0];
  uint64_t at = message_.received + offset;
  const MemoryRegion* region =
      qp_.host().memory().allow(target.lkey, qp_.pd(), qp_.number(), kRemoteWrite,
                                target.address + at, headers.payload_len());
  if (!region || !region->direct) return false;
  Moved moved = scatter_payload(qp_.mover(*this, kRemoteWrite), message_.target.entries(), at,
                                packet, steps_.tail());
  return !moved.failed;
}

// These PSNs, the expected ones, have come.
void Responder::note_expected(uint64_t psns) {
  Ahead& ahead = *ahead_;
  ahead.holes.fill(expected_, expected_ + psns, qp_.scheduler().now());
  ahead.kept.drop(expected_, expected_ + psns);
}

// What was kept and whose turn has come now.
void Responder::take_kept() {
  Ahead& ahead = *ahead_;
  TimeNs now = qp_.scheduler().now();
  while (ahead.kept.holds(expected_) && !steps_.full()) {
    KeptPackets::Kept kept = ahead.kept.take(expected_);
    if (!kept.placed && kept.packet->payload.length > 0 && !payload_bytes(*kept.packet)) {
      // Its region has gone meanwhile: it is as if it had not come.
      qp_.host().stale_payloads().add();
      qp_.host().pool().release(kept.packet);
      ahead.holes.count_arrival();
      ahead.holes.note(expected_, expected_ + 1, now, qp_.patience());
      break;
    }
    placed_early_ = kept.placed;
    take_expected(kept.packet, kept.packet->transport());
    placed_early_ = false;
  }
  ask_for_missing(now);
}

// NAKs for what is lost by now. Where nobody sends what is missing, what was kept is dropped.
void Responder::ask_for_missing(TimeNs now) {
  Ahead& ahead = *ahead_;
  bool hopeless = false;
  auto ask = [&](uint64_t begin, uint64_t end, uint8_t tries) {
    hopeless |= tries > Holes::kMostTries;
    for (uint64_t psn = begin; psn < end && !ahead.missing.full(); ++psn) ahead.missing.push(psn);
  };
  if (!ahead.holes.empty()) ahead.holes.ask_for_lost(now, qp_.patience(), ask);
  if (hopeless) return forget_ahead();
  if (!ahead.missing.empty()) qp_.make_acknowledge_ready();
  if (ahead.holes.due() == kNever) {
    qp_.scheduler().cancel(ahead.timer);
  } else if (ahead.timer.due() != ahead.holes.due()) {
    qp_.scheduler().at(ahead.timer, ahead.holes.due());
  }
}

void Responder::on_hole_timer(TimeNs now) {
  if (!selective()) return forget_ahead();
  ask_for_missing(now);
}

// Packets that were kept are lost.
void Responder::forget_ahead() {
  if (!ahead_) return;
  ahead_->kept.clear();
  ahead_->holes.clear();
  ahead_->top = expected_;
  while (!ahead_->missing.empty()) ahead_->missing.pop();
  qp_.scheduler().cancel(ahead_->timer);
}

// It names one missing PSN and acknowledges nothing to whom understands it. Its own PSN is one
// before which everything is done, so that others may take it for a sequence NAK.
Packet* Responder::emit_selective_nak() {
  Ahead& ahead = *ahead_;
  while (!ahead.missing.empty()) {
    uint64_t psn = ahead.missing.front();
    ahead.missing.pop();
    if (psn < expected_ || ahead.kept.holds(psn)) continue;
    uint64_t done = steps_.empty() ? expected_ : steps_.front().psn;
    wire::HeaderTemplate::Fields fields;
    fields.opcode = wire::Opcode::kRcAck;
    fields.psn = static_cast<uint32_t>(done) & kPsnMask;
    fields.reserved6 = qp_.selective_bit();
    fields.reserved7 = kSelectiveNak;
    qp_.extensions().aeth = {aeth::kNakSequence, static_cast<uint32_t>(psn) & kPsnMask};
    Packet* packet = qp_.host().pool().acquire();
    qp_.write_headers(fields, packet);
    qp_.make_acknowledge_ready();
    return packet;
  }
  return nullptr;
}

}  // namespace rocefs
