// DaemonLog: lines for the daemon's dmesg, from any thread. It never waits, and says no more than
// people can read: what an algorithm logs at every call would keep the daemon busy.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "core/dmesg.h"
#include "core/time.h"

namespace rocefs {

class DaemonLog {
 public:
  static constexpr unsigned kLinesPerSecond = 100;
  static constexpr size_t kLongestLine = 1024;

  void log(LogLevel level, std::string_view text);

 private:
  // Whether there may be more in this second; counts what may not.
  bool admit(TimeNs now);

  std::mutex mutex_;
  TimeNs second_ = 0;
  unsigned said_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace rocefs
