// InFlight: packets on a link in the order of their arrival, with its time. Neither push() nor
// pop() touches a packet: those of a large fabric are not in the cache. Allocates only to grow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"
#include "rdma/packet/packet.h"

namespace rocefs {

class InFlight {
 public:
  struct Slot {
    Packet* packet;
    TimeNs arrival;
  };
  static constexpr uint32_t kFirstSlots = 4;  // a power of two
  using FirstSlots = std::array<Slot, kFirstSlots>;

  // `first` outlives the object.
  explicit InFlight(FirstSlots& first) : slots_(first.data()) {}
  ~InFlight() {
    clear();
    if (mask_ >= kFirstSlots) delete[] slots_;
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  bool empty() const { return front_ == nullptr; }
  const Packet* front() const { return front_; }
  // Whether there are packets behind the front.
  bool more() const { return count_ > 0; }
  // The next behind the front.
  const Packet* second() const { return more() ? slots_[first_].packet : nullptr; }
  // Arrival of the last one. There must be more than the front.
  TimeNs last_arrival() const { return slots_[(first_ + count_ - 1) & mask_].arrival; }
  // `arrival` is not kept of a packet that is alone.
  void push(PacketPtr&& packet, TimeNs arrival) {
    if (!front_) {
      front_ = packet.release();
      return;
    }
    if (count_ > mask_) grow();
    slots_[(first_ + count_++) & mask_] = {packet.release(), arrival};
  }
  // Takes the front. There must be one.
  PacketPtr pop() {
    PacketPtr packet(front_);
    front_ = nullptr;
    return packet;
  }
  // Moves the next one to the front after pop(), and returns its arrival; kNever if there is none.
  TimeNs advance() {
    if (count_ == 0) return kNever;
    const Slot& next = slots_[first_];
    first_ = (first_ + 1) & mask_;
    --count_;
    front_ = next.packet;
    return next.arrival;
  }
  void clear() {
    while (front_) {
      pop();
      advance();
    }
  }
  // Asks the CPU for what push(), advance() and second() will read.
  void prefetch() const { __builtin_prefetch(&slots_[first_], 1); }

 private:
  void grow() {
    Slot* larger = new Slot[2 * (size_t{mask_} + 1)];
    for (uint32_t i = 0; i < count_; ++i) larger[i] = slots_[(first_ + i) & mask_];
    if (mask_ >= kFirstSlots) delete[] slots_;
    slots_ = larger;
    mask_ = 2 * mask_ + 1;
    first_ = 0;
  }

  Packet* front_ = nullptr;
  Slot* slots_;  // a ring of those behind the front
  uint32_t first_ = 0, count_ = 0;
  uint32_t mask_ = kFirstSlots - 1;
};

}  // namespace rocefs
