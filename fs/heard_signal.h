// Decides by the pending signals whether a waiting caller is to stop. Private to fs/.
#pragma once

#include "core/tree/file.h"

namespace rocefs {

// The kernel interrupts a wait for each signal with a handler. Many handlers only take note: a
// child has ended, the window was resized, Go's scheduler wants the processor. They are installed
// with SA_RESTART, after which the kernel restarts the call. FUSE cannot ask for a restart and
// continues to wait instead.
enum class HeardSignal {
  kNone,  // another thread has it, or something else than a signal woke the caller
  kNews,
  kStop,  // also of a caller who is gone, or who cannot be looked at
};
HeardSignal heard_signal(const Caller& caller);

}  // namespace rocefs
