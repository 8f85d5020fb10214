// Assignments: stores as text, PATH=VALUE, as `set` and `clock/at` read them and `clock/log` writes
// them.
//
// Paths are those of the tree, from the mount point. A VALUE ends at the next blank; one that holds
// blanks, or begins with a quote, stands in single quotes: 'f1 write mb_0 mb_1'. In quotes \' is a
// quote, \\ a backslash and \n a newline; outside them these are letters like others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"

namespace rocefs {

struct Assignment {
  std::string path, value;
  bool operator==(const Assignment&) const = default;
};

// At least one, separated by blanks or by newlines; a line with nothing in it is EINVAL, and so is
// whatever is no assignment.
Result<std::vector<Assignment>> parse_assignments(std::string_view text);
// What parses back to the same, in one line.
std::string format_assignment(std::string_view path, std::string_view value);
std::string format_assignments(const std::vector<Assignment>& assignments);

// When a store is to be applied, as clock/at's first word says.
struct When {
  bool absolute = false;
  Moment moment;  // its time alone, and that from now on, if not absolute
};
// DURATION from now on, @TIME, or @TIME+N; EINVAL or ERANGE for whatever is none.
Result<When> parse_when(std::string_view text);
// @NS, or @NS+N after N events of that instant.
std::string format_moment(const Moment& moment);

}  // namespace rocefs
