// ResponderResources: what a reliable responder owes for READs and atomics: the responses that are
// due, in PSN order, and what is kept of answered ones so that they can be answered again.
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
  // One READ or atomic of the far end.
  struct Resource {
    bool read = false;
    wire::Opcode answer = wire::Opcode::kRcAtomicAck;  // of an atomic
    uint8_t access = kRemoteAtomic;                    // likewise: the right that it needs
    bool ready = false;  // its turn has come, and the atomic has been executed
    uint64_t first_psn = 0;
    uint64_t end_psn = 0;
    uint64_t sent_end = 0;  // one past the highest PSN that was answered
    uint64_t address = 0;
    uint32_t rkey = 0;
    uint64_t length = 0;
    AtomicOperation operation;
    uint64_t original = 0;
    uint32_t messages = 0;  // the MSN of its answer
  };

  ResponderResources(QpContext& qp, Congestion& congestion);

  // Takes the place of the oldest one. False when that one is unanswered: the far end has more
  // under way than was agreed.
  bool admit(const Resource& resource, uint32_t& slot);
  Resource& resource(uint32_t slot) { return slots_[slot]; }
  // Everything before it is done: it is answered from now on.
  void answer(uint32_t slot);
  // A duplicate request: these PSNs of it are answered again, if it is remembered.
  void replay(uint64_t psn, uint64_t end);
  bool empty() const { return pending_.empty(); }
  // What is due and what is remembered is forgotten.
  void clear();
  // What is due is forgotten.
  void drop_pending();

  // The next response packet; null when there is none now, or it has failed.
  Packet* emit();
  // The PSN of the READ whose memory has gone since its request came, once. Nothing is due then.
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

  Packet* emit_read(const PendingResponse& due);
  Packet* finish(Packet* packet);
  void write_headers(Packet* packet, const PendingResponse& due);
  void fail();
  Moved fetch(const Resource& resource, uint64_t psn, Packet* packet);
  void fetch_more();

  QpContext& qp_;
  Congestion& congestion_;
  std::vector<Resource> slots_;  // made when the first request comes
  uint32_t oldest_ = 0;
  void replay_part(uint32_t slot, uint64_t psn, uint64_t end);

  // By PSN: at most one for each resource up to its end, and before them parts that are answered
  // again.
  std::vector<PendingResponse> pending_;
  Prefetch prefetch_;          // of responses to READs
  uint64_t prefetch_psn_ = 0;  // what is to be fetched next
  std::optional<uint64_t> failed_psn_;
};

}  // namespace rocefs
