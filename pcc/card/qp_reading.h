// QpReading: a queue pair as the register pages of its device show it (rdma/uapi/registers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/takeover/shared_memory.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

struct QpReading {
  uint32_t qpn = 0;
  uint32_t generation = 0;
  uint32_t pid = 0;
  std::string comm;  // without control characters
  uint64_t rtt_ns = 0;
  uint64_t rate_bps = 0;
  uint64_t cnps = 0;                   // since counting began, while an owner counts; else all
  uint32_t window = ROCEFS_NO_WINDOW;  // the owner's if it knows the queue pair, else CFR's
  // Fields of the control page; valid if the owner of the windows knows the queue pair.
  bool owned = false;
  uint32_t slot = 0;
  uint32_t calls = 0;
  uint64_t rtt_timeouts = 0;
  uint32_t late_calls = 0;
};

// Reads a queue pair; empty if inactive. Any thread. `control` is null without an owner of the
// windows. Numbers of the page are untrusted and returned as they are.
std::optional<QpReading> read_qp(const SharedMemory& signals, const SharedMemory* control,
                                 uint32_t qpn);
struct ActiveQp {
  uint32_t qpn, generation;
  bool operator==(const ActiveQp&) const = default;
};
// Active queue pairs in the order of their numbers.
std::vector<ActiveQp> active_qps(const SharedMemory& signals);
// Readings of those, in the same order.
std::vector<QpReading> read_active_qps(const SharedMemory& signals, const SharedMemory* control);

}  // namespace rocefs
