// Namespaces of the process's own. Its callers have one thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// Moves the calling process into new user and mount namespaces. Its user and group alone have
// numbers there, their own; it has all capabilities there until its next execve(2).
Result<void> enter_user_namespace();

// Makes mounts of the calling process's mount namespace invisible outside; mounts made outside
// still arrive. `places`: where it will mount; in a chroot each must be a mount.
Result<void> keep_mounts_inside(const std::vector<std::string>& places);

// Moves the calling process into a mount namespace whose mounts are
// invisible outside; mounts made outside still arrive. Without the privilege it also gets a user
// namespace, in which only its own user and group are mapped. Afterwards it may mount below
// `places`; an ordinary user loses that with the next execve(2).
Result<void> enter_private_mounts(const std::vector<std::string>& places);

}  // namespace rocefs
