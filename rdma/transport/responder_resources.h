// ResponderResources: the responses to READs and atomics that a reliable responder owes, in PSN
// order, and the answered requests that it keeps to answer duplicates.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"
#include "rdma/transport/congestion.h"
#include "rdma/transport/prefetch.h"
#include "rdma/transport/qp_context.h"

namespace rocefs {

class ResponderResources final : public MemoryListener {
 public:
  // A READ or atomic of the far end.
  struct Resource {
    bool read = false;
    wire::Opcode answer = wire::Opcode::kRcAtomicAck;  // an atomic's answer
    uint8_t access = kRemoteAtomic;                    // right that an atomic needs
    bool ready = false;                                // due, and an atomic has been executed
    uint32_t rkey = 0;
    uint32_t pd = 0;  // of the region
    uint32_t length = 0;
    uint32_t messages = 0;  // MSN of the answer
    uint64_t first_psn = 0;
    uint64_t end_psn = 0;
    uint64_t sent_end = 0;  // one past the highest PSN that was answered
    uint64_t address = 0;
    uint64_t original = 0;
    AtomicOperation operation;
  };

  ResponderResources(QpContext& qp, Congestion& congestion);

  // Keeps a request, in place of the oldest one when there are max_dest_rd_atomic. False when that
  // one is unanswered: the far end has more requests under way than agreed.
  bool admit(const Resource& resource, uint32_t& slot);
  // Requests for which there is memory: as many as have come, up to max_dest_rd_atomic.
  size_t capacity() const { return slots_.capacity(); }
  Resource& resource(uint32_t slot) { return slots_[slot]; }
  // Makes the answer due: everything before the request is done.
  void answer(uint32_t slot);
  // Answers these PSNs of a duplicate request again, if the request is still kept.
  void replay(uint64_t psn, uint64_t end);
  bool empty() const { return pending_.empty(); }
  // Drops due responses and kept requests.
  void clear();
  // Drops due responses.
  void drop_pending();

  // Emits the next response packet; null when there is none now, or it has failed.
  PacketPtr emit();
  // PSN of the READ whose memory has gone since its request came, reported once. No response is due
  // then.
  std::optional<uint64_t> take_failed() { return std::exchange(failed_psn_, std::nullopt); }

  void memory_done(uint64_t ticket, bool ok) override;
  bool memory_pending() const { return prefetch_.pending(); }

 private:
  struct PendingResponse {
    uint32_t slot = 0;
    uint64_t begin = 0;
    uint64_t next = 0;
    uint64_t end = 0;
  };

  PacketPtr emit_read(const PendingResponse& due);
  void finish(Packet& packet);
  void write_headers(Packet& packet, const PendingResponse& due);
  void fail();
  Moved fetch(const Resource& resource, uint64_t psn, Packet& packet);
  void fetch_more();

  void replay_part(uint32_t slot, uint64_t psn, uint64_t end);

  // Sorted by PSN: at most one entry for each resource up to its end, and before these the parts
  // that are answered again. First: each data packet of the queue pair asks whether it is empty.
  std::vector<PendingResponse> pending_;
  QpContext& qp_;
  Congestion& congestion_;
  std::vector<Resource> slots_;  // a ring; it grows as requests come, where its oldest is the first
  uint32_t oldest_ = 0;
  Prefetch prefetch_;          // payloads of responses to READs
  uint64_t prefetch_psn_ = 0;  // next PSN to be fetched
  std::optional<uint64_t> failed_psn_;
};

}  // namespace rocefs
