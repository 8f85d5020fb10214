// Open text: limits what all open files of the process keep for their readers; a user may have many
// descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "core/base/shares.h"

namespace rocefs {

// Takes `bytes` for the user. Null: the user's open files hold too much.
Shares::Share take_open_text(uid_t user, size_t bytes);

}  // namespace rocefs
