// CoreCrossings: what the links from one packet core to another transmit, while both run. The
// sending core pushes each packet at the begin of its transmission, with the time of its arrival;
// the receiving one takes it between two events and has it delivered at that time, or at once if
// that has passed. A PAUSE frame crosses as a packet without headers, so that neither needs memory
// of its own.
//
// A receiver that gets no CPU takes nothing. Then cables back up: with kMost packets under way, a
// link that has transmitted pulls no more, and its source keeps what it has. At most one packet per
// link is under way beyond that; PAUSE frames always go, of which there are few without packets in
// return.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/packet_core.h"
#include "rdma/fabric/crossings.h"

namespace rocefs {

class CoreCrossings final : public Crossings {
 public:
  // Packets under way with which links stop. A core that wakes up takes as many in less than the
  // time in which the other one fills half of them.
  static constexpr uint64_t kMost = 1024;

  // `pool`: of the sending core, for PAUSE frames. `stale` counts packets whose payload has gone.
  CoreCrossings(PacketCore& from, PacketCore& to, PacketPool& pool, Counter& stale)
      : from_(from), to_(to), pool_(pool), stale_(stale) {}
  CoreCrossings(const CoreCrossings&) = delete;
  CoreCrossings& operator=(const CoreCrossings&) = delete;

  // Sending core, or alone. The payload is lent or copied (share_payload()).
  void add(Link& link, PacketPtr&& packet, TimeNs arrival) override;
  void add(Link& link, const PauseFrame& pause) override;
  // Sending core: lets links go on if there is room.
  void resume() {
    if (can_resume()) release();
  }
  bool can_resume() const { return !stopped_.empty() && under_way() <= kMost / 2; }

  // Receiving core: takes at most so many packets and PAUSE frames; returns how many.
  size_t take(size_t most);
  bool empty() const { return mail_.empty(); }
  // Arrival of the next one, if take() has left it; else kNever.
  TimeNs first_left() const { return mail_.seen() ? mail_.seen()->arrival : kNever; }

  void take_of(const Link& link, PacketFifo& into) override;
  void drop_pauses(const Link& link) override;
  void clear() override;

 private:
  uint64_t under_way() const { return sent_ - taken_.load(std::memory_order_seq_cst); }
  void send(Link& link, PacketPtr&& packet, TimeNs arrival);
  void stop(Link& link);
  void release();
  template <class Wanted>
  void remove(Wanted wanted, PacketFifo& into);

  PacketCore& from_;
  PacketCore& to_;
  PacketPool& pool_;
  Counter& stale_;
  PacketMail mail_;
  // Sending core.
  alignas(64) uint64_t sent_ = 0;
  std::vector<Link*> stopped_;
  // Receiving core, but that the sending one says whether it waits for room.
  alignas(64) std::atomic<uint64_t> taken_{0};
  std::atomic<bool> room_wanted_{false};
};

}  // namespace rocefs
