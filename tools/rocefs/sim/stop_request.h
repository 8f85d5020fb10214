// StopRequest: SIGINT, SIGTERM and SIGHUP as a request that a run looks at between two steps of
// time. The second signal of a kind ends the process, as by default, so that a run that hangs can
// be ended.
#pragma once

#include <signal.h>

#include <array>
#include <string_view>

namespace rocefs {

class StopRequest {
 public:
  // From now on the signals are requests, except for those that are ignored (nohup, background
  // jobs of a script).
  StopRequest();
  // Restores what the signals did before.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Name of a signal that has arrived; empty if none has. Any thread.
  std::string_view signal_name() const;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace rocefs
