// Out-of-order packets: a reliable responder's handling of packets ahead of the expected PSN when
// selective retransmission is agreed.
#include <algorithm>

#include "rdma/transport/qp_context.h"
#include "rdma/transport/responder.h"
#include "rdma/wire/aeth.h"
#include "rdma/wire/psn.h"

namespace rocefs {

Responder::OutOfOrder::OutOfOrder(Responder& responder)
    : timer(event_of<&Responder::on_missing_timer>(&responder)),
      nak_timer(event_of<&Responder::on_nak_timer>(&responder)) {}

bool Responder::selective() const {
  return qp_.host().selective().enabled() && agreement_.agrees();
}

// Keeps a packet ahead of the expected PSN.
void Responder::buffer_out_of_order(PacketPtr&& packet, const wire::Transport& headers,
                                    uint64_t psn) {
  TimeNs now = qp_.scheduler().now();
  if (!ooo_) ooo_ = std::make_unique<OutOfOrder>(*this);
  OutOfOrder& ooo = *ooo_;
  ooo.missing.count_arrival();
  ooo.top = std::max(ooo.top, expected_psn_);
  // A packet too far ahead is dropped, but shows that those before it are missing.
  bool beyond = psn - expected_psn_ >= kMaxOutOfOrder;
  if (beyond) psn = expected_psn_ + kMaxOutOfOrder;
  const wire::OpcodeInfo& info = headers.info();
  bool read = info.has_reth && !info.has_payload;
  uint64_t psns = read ? psns_of(headers.reth().dma_len, qp_.attributes().path_mtu) : 1;
  if (psn > ooo.top) ooo.missing.add(ooo.top, psn, now, qp_.reorder_limits());
  if (beyond) {
    ooo.top = std::max(ooo.top, psn);
  } else if (ooo.packets.holds(psn)) {
    qp_.port().counters().duplicate_request.add();
  } else {
    ooo.missing.mark_received(psn, psn + psns, now);
    ooo.top = std::max(ooo.top, psn + psns);
    bool placed = place_early(*packet, headers, psn);
    ooo.packets.insert({std::move(packet), psn, placed}, expected_psn_);
    qp_.port().counters().sr_ooo_placed.add();
  }
  send_missing_naks(now);
}

// Places the payload of a packet of the current WRITE ahead of its turn, if its memory answers at
// once.
bool Responder::place_early(Packet& packet, const wire::Transport& headers, uint64_t psn) {
  const wire::OpcodeInfo& info = headers.info();
  if (!message_.active || !message_.write || !info.is_write || info.first || info.only)
    return false;
  if (pending_steps_ > 0) return false;  // earlier bytes are pending
  uint64_t mtu = qp_.attributes().path_mtu, offset = (psn - expected_psn_) * mtu;
  if (offset >= message_.remaining) return false;
  uint64_t left = message_.remaining - offset;
  if (headers.payload_len() != std::min(mtu, left) || info.last != (left <= mtu)) return false;
  const Sge& target = message_.target.entries()[0];
  uint64_t at = message_.received + offset;
  const MemoryRegion* region =
      qp_.host().memory().allow(target.lkey, message_.pd, qp_.number(), kRemoteWrite,
                                target.address + at, headers.payload_len());
  if (!region || !region->direct) return false;
  Moved moved = scatter_payload(qp_.mover(*this, kRemoteWrite, message_.pd),
                                message_.target.entries(), at, packet, steps_.tail());
  return !moved.failed;
}

// Notes the arrival of `psns` PSNs from the expected one on.
void Responder::note_received(uint64_t psns) {
  OutOfOrder& ooo = *ooo_;
  ooo.missing.mark_received(expected_psn_, expected_psn_ + psns, qp_.scheduler().now());
  ooo.packets.drop(expected_psn_, expected_psn_ + psns);
}

// Delivers the kept packets whose turn has come.
void Responder::deliver_in_order() {
  OutOfOrder& ooo = *ooo_;
  TimeNs now = qp_.scheduler().now();
  while (ooo.packets.holds(expected_psn_) && !steps_.full()) {
    ReorderBuffer::Entry entry = ooo.packets.take(expected_psn_);
    if (!entry.placed && entry.packet->payload.length > 0 && !payload_bytes(*entry.packet)) {
      // A packet whose region has gone meanwhile counts as not received.
      qp_.host().stale_payloads().add_shared();
      ooo.missing.count_arrival();
      ooo.missing.add(expected_psn_, expected_psn_ + 1, now, qp_.reorder_limits());
      break;
    }
    placed_early_ = entry.placed;
    wire::Transport headers = entry.packet->transport();
    handle_expected(std::move(entry.packet), headers);
    placed_early_ = false;
  }
  send_missing_naks(now);
}

// Sends NAKs for the PSNs that are lost by now. After kMaxTries without an answer all kept packets
// are dropped, and everything is asked for.
void Responder::send_missing_naks(TimeNs now) {
  OutOfOrder& ooo = *ooo_;
  bool hopeless = false;
  auto ask = [&](uint64_t begin, uint64_t end, uint8_t tries) {
    hopeless |= tries > MissingPsns::kMaxTries;
    ooo.to_nak.add(begin, end);
  };
  if (!ooo.missing.empty()) ooo.missing.nak_due(now, qp_.reorder_limits(), ask);
  if (hopeless) return request_all();
  if (!ooo.to_nak.empty()) qp_.make_acknowledge_ready();
  if (ooo.missing.due() == kNever) {
    qp_.scheduler().cancel(ooo.timer);
  } else if (ooo.timer.due() != ooo.missing.due()) {
    qp_.scheduler().at(ooo.timer, ooo.missing.due());
  }
}

void Responder::on_missing_timer(TimeNs now) {
  if (!selective()) return drop_out_of_order();
  send_missing_naks(now);
}

// Drops all kept packets.
void Responder::drop_out_of_order() {
  if (!ooo_) return;
  ooo_->packets.clear();
  ooo_->missing.clear();
  ooo_->top = expected_psn_;
  ooo_->to_nak.clear();
  qp_.scheduler().cancel(ooo_->timer);
  qp_.scheduler().cancel(ooo_->nak_timer);
}

// Whether a NAK may go now. After a burst NAKs go as fast as the link brings full packets: one
// packet may fill the whole hole, as a READ of many PSNs does.
bool Responder::may_nak(TimeNs now) {
  constexpr TimeNs kBurst = 128;
  OutOfOrder& ooo = *ooo_;
  auto packet_ns = static_cast<TimeNs>(qp_.port().receive_ns(qp_.attributes().path_mtu));
  if (ooo.next_nak > now) {
    qp_.scheduler().at(ooo.nak_timer, ooo.next_nak);
    return false;
  }
  ooo.next_nak = std::max(ooo.next_nak, now - kBurst * packet_ns) + packet_ns;
  return true;
}

// Emits a selective NAK, which names one missing PSN and acknowledges none. The PSN in its BTH is
// one before which everything is done, so that a peer may take it for a sequence NAK.
PacketPtr Responder::emit_selective_nak() {
  OutOfOrder& ooo = *ooo_;
  ooo.to_nak.drop_before(expected_psn_);
  while (!ooo.to_nak.empty()) {
    uint64_t psn = ooo.to_nak.front().begin;
    bool kept = ooo.packets.holds(psn);
    if (!kept && !may_nak(qp_.scheduler().now())) break;
    ooo.to_nak.drop_before(psn + 1);
    if (kept) continue;
    uint64_t done = steps_.empty() ? expected_psn_ : steps_.front().psn;
    wire::HeaderTemplate::Fields fields;
    fields.opcode = qp_.opcode(wire::Opcode::kRcAck);
    fields.psn = static_cast<uint32_t>(done) & kPsnMask;
    fields.sr_capable = qp_.sr_capable();
    fields.reserved7 = kSelectiveNak;
    qp_.extensions().aeth = {aeth::kNakSequence, static_cast<uint32_t>(psn) & kPsnMask};
    PacketPtr packet = qp_.host().pool().acquire();
    qp_.write_headers(fields, *packet);
    qp_.make_acknowledge_ready();
    return packet;
  }
  return nullptr;
}

}  // namespace rocefs
