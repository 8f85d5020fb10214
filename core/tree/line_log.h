// LineLog: lines of text of which the oldest go first when it is full. It can keep them in the
// journal, where the next worker finds them. On the control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "core/takeover/journal.h"

namespace rocefs {

// In the journal: a ring that has room for one more line than the log.
struct SavedLines {
  static constexpr size_t kMaxLineBytes = 16 * 1024;
  uint64_t end;   // bytes ever written
  uint64_t size;  // bytes before it that are there
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

  // `line` ends with a newline; what is longer than kMaxLineBytes is cut.
  void add(std::string line);
  std::string text() const;
  uint64_t dropped() const { return dropped_; }

  // Once, before a line is added: takes up the lines that `saved` holds, and keeps there what is
  // added from now on; it comes with the journal's next commit. Both outlive this.
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
  uint64_t end_ = 0;  // as it will be after the commit
};

}  // namespace rocefs
