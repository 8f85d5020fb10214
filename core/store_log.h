// StoreLog: the accepted stores of a run, each with its place in it, in the form in which clock/at
// takes them: a run can be replayed. Oldest lines go first when it is full. On the control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core/time.h"

namespace rocefs {

class StoreLog {
 public:
  explicit StoreLog(size_t max_bytes = 4 << 20) : max_bytes_(max_bytes) {}

  // `assignments` as format_assignments() writes them. Stores are added in the order in which they
  // were applied.
  void add(const Moment& applied, std::string_view assignments);
  // Lines; comments among them begin with #: how many lines were dropped, and stores that make a
  // line longer than one write may be.
  std::string text() const;

 private:
  const size_t max_bytes_;
  size_t bytes_ = 0;
  uint64_t dropped_ = 0;
  std::deque<std::string> lines_;
};

}  // namespace rocefs
