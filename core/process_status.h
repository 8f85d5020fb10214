// What the kernel tells of a process in the small files of /proc.
#pragma once

#include <string>
#include <string_view>

namespace rocefs {

// All of a file in `directory`, which may be AT_FDCWD. Empty: it cannot be read.
std::string text_at(int directory, const char* name);

// The field of a /proc/PID/status whose line begins with `name`, as it stands behind it. Empty:
// there is none.
std::string_view field_of(std::string_view status, std::string_view name);

}  // namespace rocefs
