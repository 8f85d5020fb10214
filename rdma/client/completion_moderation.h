// CompletionModeration: decides which completions of a send queue wake its owner. A wake-up costs
// more than a message; with much outstanding it can wait. The owner is woken for the last
// completion, and whenever half of the rest is done, so that it can always post more in time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocefs {

class CompletionModeration {
 public:
  // Outstanding bytes from which completions are moderated.
  static constexpr uint64_t kModeratedBytes = uint64_t{1} << 20;

  // A request has completed, with `left` bytes outstanding: whether to wake the owner.
  bool raise_event(uint64_t left) {
    max_left_ = std::max(max_left_, left);
    if (left >= kModeratedBytes && left > max_left_ / 2) return false;
    max_left_ = left;
    return true;
  }

 private:
  uint64_t max_left_ = 0;  // since the last wake-up
};

}  // namespace rocefs
