// ProcessMaps: the mappings of a process and their permissions (proc_pid_maps(5)).
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/fd.h"

namespace rocefs {

// Single-threaded.
class ProcessMaps {
 public:
  // `maps`: an open /proc/PID/maps.
  explicit ProcessMaps(Fd maps) : maps_(std::move(maps)) {}

  // Returns whether the process may read all of these bytes, or write as well.
  bool allow(uint64_t address, uint64_t length, bool writes) const;

  // The two sources. ask() queries the kernel for each mapping of the range; empty before Linux
  // 6.11. read() parses the text from the process's first mapping on.
  std::optional<bool> ask(uint64_t address, uint64_t length, bool writes) const;
  bool read(uint64_t address, uint64_t length, bool writes) const;

 private:
  Fd maps_;
};

}  // namespace rocefs
