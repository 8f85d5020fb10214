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

// Parses one or more assignments, separated by blanks or newlines. EINVAL for an empty line and for
// text that is no assignment.
Result<std::vector<Assignment>> parse_assignments(std::string_view text);
// One line that parses back to the same assignments.
std::string format_assignment(std::string_view path, std::string_view value);
std::string format_assignments(const std::vector<Assignment>& assignments);

// When a store is to be applied, as clock/at's first word says.
struct When {
  bool absolute = false;
  Moment moment;  // `at` alone, relative to now, if not absolute
};
// Parses DURATION (relative to now), @TIME or @TIME+N. EINVAL or ERANGE for other text.
Result<When> parse_when(std::string_view text);
// @NS, or @NS+N after N events of that instant.
std::string format_moment(const Moment& moment);

}  // namespace rocefs
