// Header prediction, as TCP has it (Jacobson, 1990): a packet of a WRITE that comes in order, into
// memory that answers at once, takes a short way, which asks for little that such a packet does not
// need. All others take the long way: handle_expected() and request_check.cc; so do those of a
// queue pair that keeps packets out of order, or misses some.
#include "rdma/packet/store.h"
#include "rdma/transport/qp_context.h"
#include "rdma/transport/responder.h"

namespace rocefs {

// Takes the packet with the expected PSN if the prediction is right. Otherwise nothing changes, and
// the long way finds out what is wrong, if anything is.
bool Responder::take_predicted(const Packet& packet, const wire::Transport& headers) {
  const wire::OpcodeInfo& info = headers.info();
  const bool plain = info.is_write && !info.has_imm && info.service == wire::Service::kRc;
  if (!plain || (ooo_ && !ooo_->idle()) || !steps_.empty()) return false;
  const bool begins = info.first || info.only, ends = info.last || info.only;
  if (begins == message_.active || (!begins && !message_.write)) return false;
  // The part of memory that this packet's checks are for: the whole message's, or its own.
  Sge part;
  uint64_t remaining = message_.remaining;
  const uint64_t length = headers.payload_len(), mtu = qp_.attributes().path_mtu;
  if (begins) {
    const wire::Reth reth = headers.reth();
    if (!(qp_.attributes().access & kRemoteWrite) || reth.dma_len > kMaxMessage) return false;
    part = {reth.va, reth.dma_len, reth.rkey};
    remaining = reth.dma_len;
  } else {
    const Sge& target = message_.target.entries()[0];
    part = {target.address + message_.received, static_cast<uint32_t>(length), target.lkey};
  }
  const bool fits = ends ? length == remaining && length <= mtu : length == mtu;
  if (length == 0 || length > remaining || !fits) return false;
  const MemoryRegion* region = qp_.host().memory().allow(part.lkey, qp_.pd(), qp_.number(),
                                                         kRemoteWrite, part.address, part.length);
  if (!region || !region->direct) return false;

  if (!region->blank) {
    store_tail_last(region->direct + region->offset_of(part.address), payload_bytes(packet),
                    length);
  }
  if (begins) {
    count_write();
    message_.write = true;
    message_.pd = qp_.pd();
    message_.received = 0;
    message_.target = part;
  }
  message_.active = !ends;
  message_.received += length;
  message_.remaining = remaining - length;
  state_ = ResponderState::kInOrder;
  acknowledged_ = expected_psn_++;
  acknowledge_due_ |= headers.ack_req();
  if (acknowledge_due_) qp_.make_acknowledge_ready();
  if (ends) count_message();
  return true;
}

}  // namespace rocefs
