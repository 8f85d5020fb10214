// StoreLog: the accepted stores of a run, each with its place in it, in the form in which clock/at
// takes them: a run can be replayed. Oldest lines go first when it is full. On the control thread.
#pragma once

#include <string>
#include <string_view>

#include "core/base/time.h"
#include "core/tree/line_log.h"

namespace rocefs {

class StoreLog {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;
  using Saved = SavedRing<kMaxBytes>;
  explicit StoreLog(size_t max_bytes = kMaxBytes) : lines_(max_bytes) {}

  // `assignments` as format_assignments() writes them. Stores are added in the order in which they
  // were applied.
  void add(const Moment& applied, std::string_view assignments);
  // What is no store, but part of the run's story: a comment.
  void note(const Moment& at, std::string_view what);
  // Lines; comments among them begin with #: how many lines were dropped, notes, and stores that
  // make a line longer than one write may be.
  std::string text() const;
  // As LineLog::keep().
  void keep(Journal& journal, Saved& saved) { lines_.keep(journal, saved); }

 private:
  LineLog lines_;
};

}  // namespace rocefs
