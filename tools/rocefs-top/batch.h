// Batch: tables for scripts, as text or as CSV. Any thread.
#pragma once

#include <string>

#include "tools/rocefs-top/look.h"
#include "tools/rocefs-top/table.h"

namespace rocefs::top {

// A heading and all columns, as wide as they are. `mount_point` is printable.
std::string table_page(const std::string& mount_point, const Table& table, const Look& now);

// Lines of CSV (RFC 4180): time and interval in ns, then the columns in plain units; of a count its
// rate, empty where no time has passed, and the count.
std::string csv_heading(Screen screen);
std::string csv_lines(const Table& table, const Look& before, const Look& now);

}  // namespace rocefs::top
