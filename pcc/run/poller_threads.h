// PollerThreads: the pollers of a run in real time, one thread each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "pcc/run/controller.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class PollerThreads {
 public:
  // Valid between begin() of `controller`, with the same `signals` and `pollers`, and end(). Throws
  // std::system_error if a thread cannot be created; no thread is left then. Each thread calls
  // `first` before anything else.
  PollerThreads(PccController& controller, const rocefs_signals_page& signals, unsigned pollers,
                std::function<void()> first = {});
  // Calls stop().
  ~PollerThreads();
  PollerThreads(const PollerThreads&) = delete;
  PollerThreads& operator=(const PollerThreads&) = delete;
  // Returns after the last call of an algorithm has returned; never, if one does not return.
  void stop();

 private:
  void run(unsigned poller);
  // Waits until then, or until a queue pair becomes active or inactive.
  void wait(TimeNs until, uint32_t changes);

  PccController& controller_;
  const rocefs_signals_page& signals_;
  const std::function<void()> first_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// Engine time according to the page; any thread.
TimeNs engine_now(const rocefs_signals_page& signals);

}  // namespace rocefs
