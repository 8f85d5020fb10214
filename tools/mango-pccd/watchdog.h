// Watchdog: a thread that supervises algorithms and plugins. Ends the process if one of them does
// not return, unless a debugger is attached, or writes past its parameters, and when the daemon has
// gone.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/fd.h"
#include "core/base/time.h"
#include "pcc/run/controller.h"
#include "tools/mango-pccd/slow_call_log.h"

namespace rocefs {

class Watchdog {
 public:
  // Wall time.
  static constexpr TimeNs kTick = 50 * kMillisecond;
  static constexpr TimeNs kSlowCall = 100 * kMillisecond;
  static constexpr TimeNs kMaxCall = kSecond;
  static constexpr TimeNs kMaxLoad = 3 * kSecond;

  // `log` is called on the watchdog's thread.
  Watchdog(PccController& controller, std::function<void(std::string_view)> log);

  // Scope of supervision. Any thread.
  class Watch {
   public:
    explicit Watch(Watchdog& watchdog) : watchdog_(watchdog) { watchdog_.begin(); }
    ~Watch() { --watchdog_.busy_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Watchdog& watchdog_;
  };
  // Number of pollers to supervise.
  void set_pollers(unsigned pollers) { pollers_ = pollers; }
  // Whether it waits while a debugger is attached. A plugin can trace its own process, so not
  // unless somebody wants to debug.
  void set_debug(bool on) { debug_ = on; }
  // Another run or algorithm begins: its first slow call is logged, whatever was logged before.
  void expect_change() { ++changes_; }
  // File being loaded; empty: none.
  void set_loading(const std::string& file);

 private:
  static constexpr int kQuietTicks = 20;  // before it sleeps
  struct Seen {
    uint64_t number = 0;
    TimeNs since = 0;
    bool slow = false;
  };

  void begin();
  void run();
  void wait();
  void look(TimeNs now);
  void look_at_calls(TimeNs now);
  void look_at_loading(TimeNs now);
  bool is_debugged();

  PccController& controller_;
  const std::function<void(std::string_view)> log_;
  Fd event_;
  std::atomic<int> busy_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<unsigned> pollers_{1};
  std::atomic<bool> debug_{false};
  std::atomic<unsigned> changes_{0};
  std::mutex mutex_;  // guards the next two
  std::string loading_;
  uint64_t loads_ = 0;

  // Watchdog thread only.
  int quiet_ticks_ = 0;
  TimeNs last_look_ = 0;
  std::vector<Seen> calls_;
  Seen load_;
  SlowCallLog slow_calls_;
  unsigned seen_changes_ = 0;
  bool told_debugged_ = false;
  std::thread thread_;
};

}  // namespace rocefs
