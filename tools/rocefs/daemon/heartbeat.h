// Heartbeat: tells regularly that both threads of a worker, control and core, do their work.
#pragma once

#include <functional>

#include "core/base/fd.h"
#include "core/base/time.h"
#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"

namespace rocefs {

// On the loop's thread; the loop outlives it.
class Heartbeat {
 public:
  // `alive` runs every `period` of wall time, through the engine: not while one of the threads
  // hangs.
  Heartbeat(TimeNs period, PollLoop& loop, Engine& engine, std::function<void()> alive);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat();

  PollLoop& loop_;
  Engine& engine_;
  std::shared_ptr<std::function<void()>> alive_;  // an answer may come after the heart
  Fd timer_;
};

}  // namespace rocefs
