// Requests to the CPU for memory that will be read and written soon. They change nothing, and any
// address may be given.
#pragma once

#include <cstddef>

namespace rocefs {

// Asks for the cache line at `address` and for the next one.
inline void prefetch_two_lines(const void* address) {
  __builtin_prefetch(address, 1);
  __builtin_prefetch(static_cast<const char*>(address) + 64, 1);
}

// Asks for `count` cache lines from `address` on.
inline void prefetch_lines(const void* address, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    __builtin_prefetch(static_cast<const char*>(address) + 64 * i, 1);
  }
}

}  // namespace rocefs
