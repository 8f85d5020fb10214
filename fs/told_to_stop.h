// Whether somebody who waits for an answer is to wait no longer. Private to fs/.
#pragma once

#include <sys/types.h>

namespace rocefs {

// Whether the thread has a signal to take other than those that only tell of something: that a
// child has ended, that the window has another size, that Go's scheduler wants the processor. The
// kernel interrupts a wait for each signal that is caught, but restarts a system call after these.
// Also true of a thread that is gone, and of one that cannot be looked at.
bool is_told_to_stop(pid_t thread);

}  // namespace rocefs
