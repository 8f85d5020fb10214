// Text of tables: columns, and numbers rounded for people.
#pragma once

#include <string>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

using TableRow = std::vector<std::string>;

// Formats a table: columns as wide as their widest cell, the first `left` left-aligned, the others
// right-aligned. The first row has all columns.
std::string aligned(const std::vector<TableRow>& rows, size_t left);

// Formats 1234567 ns as "1.235 ms".
std::string rounded_time(double ns);
std::string rounded_rate(double bps);
// Formats wall time that is left in whole seconds, minutes or hours.
std::string seconds_to_go(TimeNs left);

}  // namespace rocefs
