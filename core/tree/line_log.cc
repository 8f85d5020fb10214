#include "core/tree/line_log.h"

#include <algorithm>

namespace rocefs {

void LineLog::add(std::string line) {
  if (line.size() > SavedLines::kMaxLineBytes) {
    line.resize(SavedLines::kMaxLineBytes - 1);
    line += '\n';
  }
  if (journal_) save(line);
  push(std::move(line));
}

void LineLog::push(std::string line) {
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  for (; bytes_ > max_bytes_ && lines_.size() > 1; ++dropped_) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

std::string LineLog::text() const {
  std::string text;
  text.reserve(bytes_);
  for (const std::string& line : lines_) text += line;
  return text;
}

// Bytes behind the committed end are free. Before overwriting a byte that a successor would read,
// commits the removal of dropped lines.
void LineLog::save(std::string_view line) {
  uint64_t oldest = saved_->end - saved_->size;
  if (end_ + line.size() - oldest > ring_size_) journal_->commit();
  for (char c : line) ring_[end_++ % ring_size_] = c;
}

void LineLog::keep(Journal& journal, SavedLines& saved, char* ring, size_t ring_size) {
  max_bytes_ = std::min(max_bytes_, ring_size - SavedLines::kMaxLineBytes);
  end_ = saved.end;
  dropped_ = saved.dropped;
  std::string line;
  for (uint64_t at = saved.end - saved.size; at < saved.end; ++at) {
    line += ring[at % ring_size];
    if (line.back() == '\n') push(std::exchange(line, {}));
  }
  journal_ = &journal;
  saved_ = &saved;
  ring_ = ring;
  ring_size_ = ring_size;
  journal.before_commit([this] {
    if (saved_->end != end_) journal_->stage(*saved_, SavedLines{end_, bytes_, dropped_});
  });
}

}  // namespace rocefs
