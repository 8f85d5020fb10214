// Dmesg: the daemon's log in the kernel's form, so that people find the reason of a refusal where
// they would look for it. Oldest lines go first when it is full. On the control thread.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "core/time.h"

namespace rocefs {

class Dmesg {
 public:
  explicit Dmesg(size_t max_bytes = 256 * 1024) : max_bytes_(max_bytes) {}

  // Control characters in `line` become '?': a user's text may be quoted in it.
  void log(TimeNs at, std::string_view line);
  // Every line as `[    5.123456] LINE`.
  std::string text() const;

 private:
  const size_t max_bytes_;
  size_t bytes_ = 0;
  std::deque<std::string> lines_;
};

}  // namespace rocefs
