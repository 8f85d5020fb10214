// NotificationPoint: the NP of one queue pair, which decides whether a CNP may be sent now.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace rocefs {

enum class CnpCause : uint8_t { kEcn, kOutOfOrder };

class NotificationPoint {
 public:
  // CNPs of a queue pair are never closer than `gap` on the wire: a CNP that is under way holds the
  // next one back, and the gap counts from its transmission.
  bool may_notify(TimeNs gap, TimeNs now) const {
    return !under_way_ && (sent_at_ == kNever || now - sent_at_ >= gap);
  }
  void begin() { under_way_ = true; }
  void sent(TimeNs now) {
    under_way_ = false;
    sent_at_ = now;
  }
  void reset() { *this = {}; }

 private:
  TimeNs sent_at_ = kNever;
  bool under_way_ = false;
};

}  // namespace rocefs
