// RttMeter: the time from sending a request packet until it is acknowledged. One packet at a time;
// a retransmitted one gives no measurement (Karn and Partridge, SIGCOMM 1987). Sans-IO.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/time.h"

namespace rocefs {

class RttMeter {
 public:
  bool running() const { return running_; }
  // The `probe` of start().
  uint32_t probe() const { return probe_; }
  // Starts a measurement: the packet of this PSN is sent, and requests an acknowledgement.
  void start(uint64_t psn, uint32_t probe, TimeNs now) {
    running_ = true;
    psn_ = psn;
    probe_ = probe;
    sent_ = now;
  }
  void cancel() { running_ = false; }
  // Ends the measurement if its packet is acknowledged: all PSNs before `next` are.
  std::optional<TimeNs> acknowledged(uint64_t next, TimeNs now) {
    if (!running_ || next <= psn_) return std::nullopt;
    running_ = false;
    return now - sent_;
  }

 private:
  bool running_ = false;
  uint32_t probe_ = 0;
  uint64_t psn_ = 0;
  TimeNs sent_ = 0;
};

}  // namespace rocefs
