#include "core/store_log.h"

#include "core/assignment.h"
#include "core/file.h"

namespace rocefs {

void StoreLog::add(const Moment& applied, std::string_view assignments) {
  std::string line = fmt::format("{} {}\n", format_moment(applied), assignments);
  if (line.size() > File::kPageSize) line = "# too long to be stored again: " + line;
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  for (; bytes_ > max_bytes_ && lines_.size() > 1; ++dropped_) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

std::string StoreLog::text() const {
  std::string text;
  text.reserve(bytes_ + 32);
  if (dropped_ > 0) text = fmt::format("# {} lines dropped\n", dropped_);
  for (const std::string& line : lines_) text += line;
  return text;
}

}  // namespace rocefs
