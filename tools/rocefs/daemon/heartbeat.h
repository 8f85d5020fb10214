// Heartbeat: reports periodically that both threads of a worker, control and core, make progress.
#pragma once

#include <functional>

#include "core/base/fd.h"
#include "core/base/time.h"
#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"

namespace rocefs {

// Thread of the loop, which outlives it.
class Heartbeat {
 public:
  // Calls `alive` every `period` of wall time after a round trip through the engine, so never while
  // one of the threads hangs.
  Heartbeat(TimeNs period, PollLoop& loop, Engine& engine, std::function<void()> alive);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat();

  PollLoop& loop_;
  Engine& engine_;
  std::shared_ptr<std::function<void()>> alive_;  // an answer may arrive after destruction
  Fd timer_;
};

}  // namespace rocefs
