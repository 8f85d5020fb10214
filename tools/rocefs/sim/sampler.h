// Sampler: the columns of [sample]: numbers in files of the tree, read at each interval.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/scenario.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"

namespace rocefs {

struct Sample {
  TimeNs at = 0;
  std::vector<std::optional<double>> values;  // by column; empty if there was nothing to read
};

// Control thread.
class Sampler {
 public:
  // Content of a file; nothing if there is none.
  using Read = std::function<std::optional<std::string>(const std::string& path)>;

  explicit Sampler(TimeNs interval) : interval_(interval) {}
  // Adds a column. EINVAL for a malformed line, for a file that is not there and may not come
  // later, as those of flows, faults and queue pairs may, and for one that now has text, but not
  // the number that is wanted.
  Result<void> add(Tree& tree, const Scenario::Line& line, const Read& read);
  // Whether the path is one of a flow, a fault, a load, a queue pair or an algorithm's parameter.
  static bool may_come_later(std::string_view path);
  // First time from `now` on at which a sample is due; kNever without a column.
  TimeNs due(TimeNs now) const;
  // First multiple of the interval from `now` on.
  TimeNs next_interval(TimeNs now) const { return (now + interval_ - 1) / interval_ * interval_; }
  Sample take(TimeNs now, const Read& read);
  // Any thread, between two samples: counters began again, so that the next sample has no rates.
  void counters_reset() { reset_ = true; }

 private:
  struct Column {
    std::string path, key;
    const KnobRow* knob = nullptr;  // whose unit the value has; null: a plain number
    bool rate = false;
    double scale = 1;
    double below = std::numeric_limits<double>::infinity();  // values from here on are left out
    std::optional<double> last;
  };
  static Result<void> check(const Column& column, const Read& read);
  std::optional<double> value_of(Column& column, double seconds, const Read& read) const;

  const TimeNs interval_;
  std::vector<Column> columns_;
  TimeNs last_ = 0;  // time of the last sample
  std::atomic<bool> reset_ = false;
};

}  // namespace rocefs
