// ProcessMaps: what a process has mapped, and for what (proc_pid_maps(5)).
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/fd.h"

namespace rocefs {

// One thread at a time.
class ProcessMaps {
 public:
  // Its /proc/PID/maps.
  explicit ProcessMaps(Fd maps) : maps_(std::move(maps)) {}

  // Whether the process may read all of these bytes, or write as well.
  bool allow(uint64_t address, uint64_t length, bool writes) const;

  // The two ways to know it. The kernel is asked for each mapping of the range; nothing: it cannot
  // be (Linux before 6.11). The text is read from the process's first mapping on.
  std::optional<bool> ask(uint64_t address, uint64_t length, bool writes) const;
  bool read(uint64_t address, uint64_t length, bool writes) const;

 private:
  Fd maps_;
};

}  // namespace rocefs
