// ServiceManager: reports state to the service manager that started rocefs, by the protocol of
// sd_notify(3): datagrams of VARIABLE=VALUE lines to $NOTIFY_SOCKET. Without one nothing is sent.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/time.h"

namespace rocefs {

class ServiceManager {
 public:
  // Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID out of the environment, so that no child
  // process reports in the name of this one.
  static ServiceManager from_environment();

  // Reports that the process `main` serves the mount. `status` is a line for people.
  void ready(pid_t main, std::string_view status) const;
  void status(std::string_view status) const;
  void stopping(std::string_view status) const;
  // Resets the manager's watchdog. Due within each watchdog(), which is 0 if there is none, or one
  // for another process.
  void alive() const;
  TimeNs watchdog() const { return watchdog_; }

 private:
  void send(const std::string& text) const;

  std::string address_;
  TimeNs watchdog_ = 0;
};

}  // namespace rocefs
