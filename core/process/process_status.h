// Reads the small files of /proc that describe a process.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace rocefs {

// Content of a file in `directory`, which may be AT_FDCWD. Empty on failure.
std::string text_at(int directory, const char* name);

// Value of the line of a /proc/PID/status that begins with `name`. Empty if there is none.
std::string_view field_of(std::string_view status, std::string_view name);
std::vector<gid_t> numbers_of(std::string_view field);

// Whether a debugger is attached to the process. False if that cannot be read.
bool is_traced(pid_t pid);

// Returns whether a /proc/PID/status has this file-system user and group. A PID may belong to
// another process by now, or be one of another namespace.
bool acts_as(std::string_view status, uid_t user, gid_t group);

}  // namespace rocefs
