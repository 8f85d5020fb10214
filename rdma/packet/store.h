// Storing octets into memory that a program watches.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

namespace rocefs {

// Copies; stores the last octets last, for a program that polls them. A memmove() may store them
// first.
inline void store_tail_last(uint8_t* into, const uint8_t* from, size_t length) {
  uint64_t last;
  if (length <= sizeof last) {
    std::memmove(into, from, length);
    return;
  }
  size_t rest = length - sizeof last;
  std::memcpy(&last, from + rest, sizeof last);
  std::memmove(into, from, rest);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(into + rest, &last, sizeof last);
}

}  // namespace rocefs
