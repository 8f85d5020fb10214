// Options of rocefs top.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "tools/rocefs-top/table.h"

namespace rocefs::top {

extern const char* const kTopUsage;

struct TopOptions {
  bool help = false, version = false, batch = false, csv = false;
  std::string mount_point;  // empty: $ROCEFS_MOUNT, or the only one
  Screen screen = Screen::kDevices;
  std::optional<Order> order;  // of --sort
  TimeNs delay = kSecond;
  uint64_t count = 0;  // tables; 0: without an end
};

// EINVAL, ERANGE with a reason in one line.
Result<TopOptions> parse_top(int argc, char** argv);

}  // namespace rocefs::top
