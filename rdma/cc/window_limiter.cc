#include "rdma/cc/window_limiter.h"

#include <algorithm>

namespace rocefs {

void WindowLimiter::receive_cnp(uint32_t packet, TimeNs now) {
  advance(packet, now);
  quiet_since_ = now;
  if (now - cut_at_ < kCutGap) return;
  cut_at_ = now;
  target_ = window_;
  window_ = std::max(window_ / 2, packet);
  steps_ = 0;
}

void WindowLimiter::advance(uint32_t packet, TimeNs now) {
  while (limits() && now - quiet_since_ >= kQuiet) {
    quiet_since_ += kQuiet;
    window_ += steps_ < kFastSteps ? (target_ - window_) / 2 : packet;
    window_ = std::min(window_, kFull);
    ++steps_;
  }
}

}  // namespace rocefs
