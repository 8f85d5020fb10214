// Mount namespace of the process's own.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// Moves the calling process, which must have one thread, into a mount namespace whose mounts are
// invisible outside; mounts made outside still arrive. Without the privilege it also gets a user
// namespace, in which only its own user and group are mapped. Afterwards it may mount below
// `places`; an ordinary user loses that with the next execve(2).
Result<void> enter_private_mounts(const std::vector<std::string>& places);

}  // namespace rocefs
