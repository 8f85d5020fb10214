// QpFifos: queue pairs of a port that have something to transmit: a FIFO per priority, linked
// through the queue pairs, so that nothing is searched. Part of a port.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "rdma/fabric/priority_turn.h"
#include "rdma/packet/traffic_class.h"
#include "rdma/transport/qp.h"

namespace rocefs {

// `Next`: the queue pair behind, in these FIFOs. The first cache line has all that a packet of the
// lowest priority needs.
template <Qp* Qp::Links::*Next>
class alignas(64) QpFifos {
 public:
  // A bit for each priority that has queue pairs.
  uint8_t ready() const { return ready_; }
  PriorityTurn& turn() { return turn_; }
  // Octets in the turn of the first queue pair.
  uint64_t& sent(size_t priority) { return fifos_[priority].sent; }
  // A queue pair that is most likely the next one; null if there is none.
  const Qp* likely_next() const {
    return ready_ ? fifos_[static_cast<size_t>(std::countr_zero(ready_))].first : nullptr;
  }

  void append(Qp& qp, size_t priority) {
    Fifo& fifo = fifos_[priority];
    qp.links().*Next = nullptr;
    (fifo.first ? fifo.last->links().*Next : fifo.first) = &qp;
    fifo.last = &qp;
    ready_ |= static_cast<uint8_t>(1u << priority);
  }
  void put_first(Qp& qp, size_t priority) {
    Fifo& fifo = fifos_[priority];
    if (!fifo.first) fifo.last = &qp;
    qp.links().*Next = std::exchange(fifo.first, &qp);
    ready_ |= static_cast<uint8_t>(1u << priority);
  }
  // Removes the first queue pair of a priority that has one.
  Qp* take(size_t priority) {
    Fifo& fifo = fifos_[priority];
    Qp* qp = fifo.first;
    fifo.first = qp->links().*Next;
    if (!fifo.first) ready_ &= static_cast<uint8_t>(~(1u << priority));
    return qp;
  }
  // Searches the FIFO: a rare call.
  void remove(Qp& qp, size_t priority) {
    Fifo& fifo = fifos_[priority];
    Qp* before = nullptr;
    for (Qp* at = fifo.first; at; before = at, at = at->links().*Next) {
      if (at != &qp) continue;
      if (!before) fifo.sent = 0;
      (before ? before->links().*Next : fifo.first) = at->links().*Next;
      if (fifo.last == at) fifo.last = before;
      if (!fifo.first) ready_ &= static_cast<uint8_t>(~(1u << priority));
      return;
    }
  }

 private:
  struct alignas(32) Fifo {
    Qp* first = nullptr;
    Qp* last = nullptr;
    uint64_t sent = 0;
  };

  uint8_t ready_ = 0;
  PriorityTurn turn_;
  std::array<Fifo, kPriorities> fifos_;
};

}  // namespace rocefs
