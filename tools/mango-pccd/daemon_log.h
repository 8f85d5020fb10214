// DaemonLog: log lines for the daemon's dmesg, from any thread. Never blocks, and limits its rate:
// an algorithm that logs at every call would keep the daemon busy.
#pragma once

#include <mutex>
#include <string_view>

#include "core/base/log_limit.h"
#include "core/tree/dmesg.h"

namespace rocefs {

class DaemonLog {
 public:
  static constexpr size_t kMaxLine = 1024;

  void log(LogLevel level, std::string_view text);

 private:
  std::mutex mutex_;
  LogLimits<kLogLevels> limits_;
};

}  // namespace rocefs
