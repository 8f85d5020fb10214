// ServiceManager: whoever started rocefs and wants to know how it goes, by the protocol of
// sd_notify(3): a datagram of VARIABLE=VALUE lines to $NOTIFY_SOCKET. Without one nothing is said.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/time.h"

namespace rocefs {

class ServiceManager {
 public:
  // Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID out of the environment: no program that
  // is started from here is to speak in this one's name.
  static ServiceManager from_environment();

  // The mount is served, by the process `main` from now on. `status` is a line for people.
  void ready(pid_t main, std::string_view status) const;
  void status(std::string_view status) const;
  void stopping(std::string_view status) const;
  // Wanted within each watchdog(): 0 if nobody waits for it, or for another process's.
  void alive() const;
  TimeNs watchdog() const { return watchdog_; }

 private:
  void send(const std::string& text) const;

  std::string address_;
  TimeNs watchdog_ = 0;
};

}  // namespace rocefs
