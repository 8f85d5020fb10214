// StoreLog: the accepted stores of a run, each with its moment, in the form that clock/at takes: a
// run can be replayed. The oldest lines are dropped when it is full. Control thread.
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

  // `assignments` in the form of format_assignments(). Stores are added in the order in which they
  // were applied.
  void add(const Moment& applied, std::string_view assignments);
  // Adds a comment about an event of the run that is not a store.
  void note(const Moment& at, std::string_view what);
  // Lines; comments begin with #: the number of dropped lines, notes, and stores too long for one
  // write.
  std::string text() const;
  // As LineLog::keep().
  void keep(Journal& journal, Saved& saved) { lines_.keep(journal, saved); }

 private:
  LineLog lines_;
};

}  // namespace rocefs
