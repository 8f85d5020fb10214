// RttMeter: the time from a packet of a request until it is acknowledged. One packet at a time; one
// that has to be sent again measures nothing (Karn and Partridge, SIGCOMM 1987). Sans-IO.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/time.h"

namespace rocefs {

class RttMeter {
 public:
  bool running() const { return running_; }
  // What start() was told.
  uint32_t probe() const { return probe_; }
  // The packet of this PSN is sent, and asks for an acknowledgement.
  void start(uint64_t psn, uint32_t probe, TimeNs now) {
    running_ = true;
    psn_ = psn;
    probe_ = probe;
    sent_ = now;
  }
  void cancel() { running_ = false; }
  // All PSNs before `next` are acknowledged.
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
