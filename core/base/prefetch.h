// Requests to the CPU for memory that will be read and written soon. They change nothing, and any
// address may be given.
#pragma once

namespace rocefs {

// Asks for the cache line at `address` and for the next one.
inline void prefetch_two_lines(const void* address) {
  __builtin_prefetch(address, 1);
  __builtin_prefetch(static_cast<const char*>(address) + 64, 1);
}

}  // namespace rocefs
