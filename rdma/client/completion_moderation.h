// CompletionModeration: which completions of a send queue its owner must hear of at once. To wake a
// thread costs more than a message does; one that has much under way has time. It hears of the last
// of it, and whenever half of what was left has been done, so that it can always ask for more in
// time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocefs {

class CompletionModeration {
 public:
  // Bytes that take their time.
  static constexpr uint64_t kModeratedBytes = uint64_t{1} << 20;

  // A request has completed, and `left` bytes are still under way.
  bool raise_event(uint64_t left) {
    max_left_ = std::max(max_left_, left);
    if (left >= kModeratedBytes && left > max_left_ / 2) return false;
    max_left_ = left;
    return true;
  }

 private:
  uint64_t max_left_ = 0;  // since the owner was to hear
};

}  // namespace rocefs
