// LineLog: lines of text; the oldest are dropped when it is full. May keep them in the journal for
// the next worker. Control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "core/takeover/journal.h"

namespace rocefs {

// Journalled lines: a ring that holds one line more than the log.
struct SavedLines {
  static constexpr size_t kMaxLineBytes = 16 * 1024;
  uint64_t end;   // bytes ever written
  uint64_t size;  // bytes kept before `end`
  uint64_t dropped;
};
template <size_t kMaxBytes>
struct SavedRing {
  static constexpr size_t kMax = kMaxBytes;
  SavedLines lines;
  char bytes[kMaxBytes + SavedLines::kMaxLineBytes];
};

class LineLog {
 public:
  explicit LineLog(size_t max_bytes) : max_bytes_(max_bytes) {}

  // `line` ends with a newline; a line longer than kMaxLineBytes is cut.
  void add(std::string line);
  std::string text() const;
  uint64_t dropped() const { return dropped_; }

  // At most once, before the first add(): takes over the lines in `saved`, and keeps further lines
  // there with the journal's next commit. Both outlive this object.
  template <size_t kMaxBytes>
  void keep(Journal& journal, SavedRing<kMaxBytes>& saved) {
    keep(journal, saved.lines, saved.bytes, sizeof saved.bytes);
  }

 private:
  void keep(Journal& journal, SavedLines& saved, char* ring, size_t ring_size);
  void save(std::string_view line);
  void push(std::string line);

  size_t max_bytes_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  std::deque<std::string> lines_;
  Journal* journal_ = nullptr;
  SavedLines* saved_ = nullptr;
  char* ring_ = nullptr;
  size_t ring_size_ = 0;
  uint64_t end_ = 0;  // after the next commit
};

}  // namespace rocefs
