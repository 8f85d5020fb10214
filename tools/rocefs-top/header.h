// Header: lines above the table, of the whole mount.
#pragma once

#include <string>
#include <vector>

#include "tools/rocefs-top/look.h"
#include "tools/rocefs-top/page.h"
#include "tools/rocefs-top/totals.h"

namespace rocefs::top {

// Engine time: "1.234 s" to the digit that moves; "-" if it is not known.
std::string clock_text(const Look& look);

// `mount_point` is printable. With `counts`, counts in place of rates. Lines fit `width`.
std::vector<Line> header_lines(const std::string& mount_point, const Look& look,
                               const Totals& totals, bool counts, size_t width);

}  // namespace rocefs::top
