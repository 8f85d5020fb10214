// ReorderBuffer: packets that came ahead of their turn, by PSN. At most kMaxOutOfOrder PSNs from
// the expected one on; memory grows with their distance from it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rdma/packet/packet.h"

namespace rocefs {

class ReorderBuffer {
 public:
  struct Entry {
    PacketPtr packet;  // null: the slot is free
    uint64_t psn = 0;
    bool placed = false;  // the payload is in its place already
  };

  bool empty() const { return count_ == 0; }
  bool holds(uint64_t psn) const {
    return count_ > 0 && at(psn).packet != nullptr && at(psn).psn == psn;
  }
  // Keeps a packet. `turn` is the expected PSN, before which no packet is kept.
  void insert(Entry entry, uint64_t turn) {
    uint64_t room = entry.psn - turn + 1;
    if (room > slots_.size()) grow(room);
    at(entry.psn) = std::move(entry);
    ++count_;
  }
  // Removes a packet that is held and gives it to the caller.
  Entry take(uint64_t psn) {
    --count_;
    return std::move(at(psn));
  }
  // Drops the kept packets of these PSNs.
  void drop(uint64_t begin, uint64_t end) {
    end = std::min(end, begin + slots_.size());
    for (uint64_t psn = begin; count_ > 0 && psn < end; ++psn) {
      if (holds(psn)) take(psn);
    }
  }
  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  Entry& at(uint64_t psn) { return slots_[psn & (slots_.size() - 1)]; }
  const Entry& at(uint64_t psn) const { return slots_[psn & (slots_.size() - 1)]; }
  void grow(uint64_t room) {
    size_t size = std::max<size_t>(64, slots_.size());
    while (size < room) size *= 2;
    std::vector<Entry> old(size);
    old.swap(slots_);
    for (Entry& entry : old) {
      if (entry.packet) at(entry.psn) = std::move(entry);
    }
  }

  std::vector<Entry> slots_;  // empty, or a power of two
  size_t count_ = 0;
};

}  // namespace rocefs
