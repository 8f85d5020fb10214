// What the register pages of a device say of its queue pairs (rdma/uapi/registers.h), for people.
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
  std::string comm;
  uint64_t rtt_ns = 0;
  uint64_t rate_bps = 0;
  uint64_t cnps = 0;  // since counting began, while somebody counts; else all
  // What the owner of the windows says, where there is one and it knows of this queue pair.
  bool owned = false;
  uint32_t window = ROCEFS_NO_WINDOW;
  uint32_t slot = 0;
  uint32_t calls = 0;
  uint64_t rtt_timeouts = 0;
};

// Any thread. `control` is null where nobody owns the windows. What whoever writes the page says is
// shown as it is.
// Nothing for a queue pair that is not active.
std::optional<QpReading> read_qp(const SharedMemory& signals, const SharedMemory* control,
                                 uint32_t qpn);
struct ActiveQp {
  uint32_t qpn, generation;
  bool operator==(const ActiveQp&) const = default;
};
// In order of their numbers.
std::vector<ActiveQp> active_qps(const SharedMemory& signals);

}  // namespace rocefs
