// A mount namespace of the process's own.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// Moves the calling process, which must have one thread, into a mount namespace from which nothing
// is seen outside; mounts made outside still arrive. Where the caller may not do that, it gets a
// user namespace too, in which it is who it was: only its own user and group are mapped. Afterwards
// it may mount below `places`; an ordinary user loses that again with the next execve(2).
Result<void> enter_private_mounts(const std::vector<std::string>& places);

}  // namespace rocefs
