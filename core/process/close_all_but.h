// Closes all inherited descriptors but two in a forked process: a pipe's end left open there would
// hide from others that it was closed.
#pragma once

#include <unistd.h>

namespace rocefs {

// Async-signal-safe.
inline void close_all_but(int one, int other) {
  unsigned low = static_cast<unsigned>(one < other ? one : other);
  unsigned high = static_cast<unsigned>(one < other ? other : one);
  if (low > 0) ::close_range(0, low - 1, 0);
  if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, ~0u, 0);
}

}  // namespace rocefs
