// Dying: whether a process has been killed, though it cannot be waited for yet: the kernel keeps
// one of its threads, in a wait that no signal ends, or a debugger keeps it.
#pragma once

#include <sys/types.h>

namespace rocefs {

// It runs no line of its program any more.
bool is_dying(pid_t process);

}  // namespace rocefs
