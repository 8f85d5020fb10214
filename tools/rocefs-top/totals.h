// Totals: the figures of a whole mount, between two looks.
#pragma once

#include <cstddef>
#include <optional>

#include "tools/rocefs-top/look.h"

namespace rocefs::top {

struct Totals {
  // A count since the mount began, and its growth in a second.
  struct Count {
    double all = 0;
    std::optional<double> per_s;
  };
  Count out, in;                // octets of all devices
  double capacity = 0;          // bit/s of the links on which devices transmit
  std::optional<double> load;   // percent of it, Ethernet framing included
  Count dropped, lost, marked;  // packets: by switches, by links, by switches
  Count pauses;                 // PAUSE frames that switches sent
  Count cnps, retransmissions;  // sent by devices
  double queued = 0;            // octets in switches now
  size_t paused = 0;            // queues of switches now
  size_t devices = 0, links = 0, queues = 0, flows = 0, running = 0;
};

Totals totals_of(const Look& before, const Look& now);

}  // namespace rocefs::top
