// Reads what the kernel tells of a process in the small files of /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace rocefs {

// All of a file in `directory`, which may be AT_FDCWD. Empty: it cannot be read.
std::string text_at(int directory, const char* name);

// The field of a /proc/PID/status whose line begins with `name`, as it stands behind it. Empty:
// there is none.
std::string_view field_of(std::string_view status, std::string_view name);
std::vector<gid_t> numbers_of(std::string_view field);

// Whether a /proc/PID/status is of who uses files as this user and this group. A PID may be another
// process's by now, or of another namespace.
bool acts_as(std::string_view status, uid_t user, gid_t group);

}  // namespace rocefs
