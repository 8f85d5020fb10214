// Tells by the pending signals whether somebody who waits for an answer is to stop. Private to fs/.
#pragma once

#include "core/tree/file.h"

namespace rocefs {

// The kernel interrupts a wait for each signal that has a handler. Many a handler only hears of
// something: that a child has ended, that the window has another size, that Go's scheduler wants
// the processor. These are installed with SA_RESTART, and the kernel calls a file again after them;
// FUSE cannot ask for that, and goes on waiting instead.
enum class HeardSignal {
  kNone,  // another thread has it, or something else than a signal woke the caller
  kNews,
  kStop,  // also of a caller who is gone, or who cannot be looked at
};
HeardSignal heard_signal(const Caller& caller);

}  // namespace rocefs
