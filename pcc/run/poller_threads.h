// PollerThreads: the pollers of a run, each on a thread of its own, in real time.
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
  // Between begin() of `controller`, with these `signals` and so many `pollers`, and end(). Throws
  // std::system_error when a thread cannot be made; none is left then. Each thread does `first`
  // before anything else.
  PollerThreads(PccController& controller, const rocefs_signals_page& signals, unsigned pollers,
                std::function<void()> first = {});
  // As stop().
  ~PollerThreads();
  PollerThreads(const PollerThreads&) = delete;
  PollerThreads& operator=(const PollerThreads&) = delete;
  // Returns when no algorithm is being called any more; for ever, if one does not return.
  void stop();

 private:
  void run(unsigned poller);
  // Until then, or until a queue pair becomes active or ceases to be.
  void wait(TimeNs until, uint32_t changes);

  PccController& controller_;
  const rocefs_signals_page& signals_;
  const std::function<void()> first_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// Engine time, as the page says; any thread.
TimeNs engine_now(const rocefs_signals_page& signals);

}  // namespace rocefs
