// Tells whether a process was killed that waitpid(2) does not return yet, because one of its
// threads is in an uninterruptible wait or a debugger holds it.
#pragma once

#include <sys/types.h>

namespace rocefs {

// True if the process is exiting, a zombie, or has SIGKILL pending: it runs no more user code.
bool is_dying(pid_t process);

}  // namespace rocefs
