// The limit of open files (RLIMIT_NOFILE): an uplink has a socket for each UDP source port.
#pragma once

#include <sys/resource.h>

namespace rocefs {

// Raises this process's soft limit to its hard one. Returns what the soft limit was: 1024 for most
// programs, because of select(2). A child that runs other people's code is given it back.
rlim_t raise_open_files();

// Lowers this process's soft limit to that; a lower one stays.
void limit_open_files(rlim_t soft);

}  // namespace rocefs
