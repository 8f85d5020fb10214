// Session: rocefs top at work, in a terminal or without one, until it ends.
#pragma once

#include <string>

#include "tools/rocefs-top/look_reader.h"
#include "tools/rocefs-top/options.h"

namespace rocefs::top {

// Both return the exit status, and may leave a line on stderr. `mount_point` is a path as it is.
int print_tables(LookReader& reader, const std::string& mount_point, const TopOptions& options);
// The terminal is as it was when this returns. Does not return without an answer of the mount: it
// ends the process by _exit(2).
int show_in_terminal(LookReader& reader, const std::string& mount_point, const TopOptions& options);

// One line on stderr; returns `status`.
int refuse(const std::string& reason, int status);
// Whether the terminal and the locale know UTF-8.
bool knows_utf8();

}  // namespace rocefs::top
