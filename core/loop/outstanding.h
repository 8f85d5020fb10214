// Outstanding: work in progress, counted by the thread of a packet core, or of a region, where it
// begins and ends. Periodic timers are not work.
#pragma once

#include <cstdint>

namespace rocefs {

struct Outstanding {
  int64_t packets = 0;   // of a region: less those that have come to it, more those that have left
  int64_t requests = 0;  // work requests posted to a send queue
  int64_t flows = 0;
  int64_t settling = 0;  // done in engine time, not yet outside (a file being written)
  bool any() const { return packets != 0 || requests != 0 || flows != 0; }

  Outstanding& operator+=(const Outstanding& other) {
    packets += other.packets;
    requests += other.requests;
    flows += other.flows;
    settling += other.settling;
    return *this;
  }
};

}  // namespace rocefs
