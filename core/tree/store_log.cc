#include "core/tree/store_log.h"

#include "core/base/assignment.h"
#include "core/tree/file.h"

namespace rocefs {

void StoreLog::add(const Moment& applied, std::string_view assignments) {
  std::string line = fmt::format("{} {}\n", format_moment(applied), assignments);
  if (line.size() > File::kPageSize) line = "# too long to be stored again: " + line;
  lines_.add(std::move(line));
}

void StoreLog::note(const Moment& at, std::string_view what) {
  lines_.add(fmt::format("# {} {}\n", format_moment(at), what));
}

std::string StoreLog::text() const {
  if (lines_.dropped() == 0) return lines_.text();
  return fmt::format("# {} lines dropped\n", lines_.dropped()) + lines_.text();
}

}  // namespace rocefs
