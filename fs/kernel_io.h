// How a session reads requests from /dev/fuse and writes what it has to say.
#pragma once

#include <fuse_lowlevel.h>

namespace rocefs {

// For fuse_session_custom_io(). Any thread.
fuse_custom_io kernel_io();

}  // namespace rocefs
