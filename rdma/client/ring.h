// Rings in memory that a client can write. Entries are read once, into the engine's memory, and
// checked then; the engine keeps its own copies of the counters that it publishes.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/takeover/shared_memory.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {

inline uint32_t load_acquire(uint32_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}
inline void store_release(uint32_t& word, uint32_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

// The engine's end of a queue of work requests.
template <class Wqe>
class WqeRing {
 public:
  WqeRing() = default;
  // `entries` is a power of two, or 0 for none.
  WqeRing(rocefs_queue* counters, uint8_t* slots, uint32_t entries)
      : counters_(counters), slots_(slots), entries_(entries) {}

  uint32_t entries() const { return entries_; }
  // Whether the counters are valid: the client has not posted more than the ring holds.
  bool sound() const { return waiting() <= entries_; }
  uint32_t waiting() const { return counters_ ? load_acquire(counters_->posted) - taken_ : 0; }
  bool empty() const { return waiting() == 0; }
  // Copies the next entry; the ring must not be empty.
  void take(Wqe& out) { std::memcpy(&out, slot(taken_++), sizeof out); }
  // Slot of the entry taken last.
  uint32_t slot_of_last() const { return (taken_ - 1) & (entries_ - 1); }
  uint64_t last_offset() const { return slot_of_last() * sizeof(Wqe); }
  // Returns all but the newest `kept` slots to the client.
  void release_all_but(size_t kept) {
    released_ = taken_ - static_cast<uint32_t>(kept);
    if (counters_) store_release(counters_->released, released_);
  }
  uint32_t released() const { return released_; }
  uint32_t slot_of_released() const { return (released_ - 1) & (entries_ - 1); }
  // Forgets posted entries.
  void drop() {
    if (!counters_) return;
    taken_ = load_acquire(counters_->posted);
    release_all_but(0);
  }

 private:
  const uint8_t* slot(uint32_t at) const { return slots_ + (at & (entries_ - 1)) * sizeof(Wqe); }

  rocefs_queue* counters_ = nullptr;
  uint8_t* slots_ = nullptr;
  uint32_t entries_ = 0;
  uint32_t taken_ = 0;
  uint32_t released_ = 0;
};

}  // namespace rocefs
