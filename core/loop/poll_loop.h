// PollLoop: the control thread's loop. It waits for descriptors (the FUSE one, sockets, signals)
// and for commands from other threads, and runs their handlers one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/loop/inbox.h"

namespace rocefs {

// Deadline callback of a loop; LoopTimer is one.
class Timed {
 public:
  // Called at the deadline, after the loop has dropped its pointer: may destroy the object.
  virtual void expire() = 0;

 protected:
  ~Timed() = default;
};

class PollLoop {
 public:
  PollLoop();

  // Loop thread, or before run(). `ready` runs whenever `fd` is readable (level-triggered) or hung
  // up. The caller keeps `fd` open until unwatch().
  void watch(int fd, std::function<void()> ready);
  // watch() for out-of-band data (POLLPRI), as of /proc/self/mountinfo.
  void watch_priority(int fd, std::function<void()> ready);
  // Adds or removes EPOLLOUT for a watched descriptor: `ready` also runs when it can be written.
  void watch_output(int fd, bool wanted);
  void unwatch(int fd);

  // Any thread, also within a handler: runs `task` on the loop thread, later, in order of posting.
  // Tasks that are posted after the loop has ended are destroyed with it.
  void post(Task task);

  // Runs until stop(); may be called again. The calling thread becomes the control thread.
  void run();
  // Any thread.
  void stop();

 private:
  friend class LoopTimer;
  struct Handler {
    uint32_t serial = 0;
    std::function<void()> ready;
  };

  void add(int fd, uint32_t events, std::function<void()> ready);
  void control(int operation, int fd, uint32_t events);
  void wake();
  int patience() const;
  void run_timers();

  Fd epoll_;
  Fd event_;
  Inbox inbox_;
  std::unordered_map<int, Handler> handlers_;
  uint32_t last_serial_ = 0;
  std::set<std::pair<TimeNs, Timed*>> timers_;  // armed timers by deadline
  std::atomic<bool> stopping_{false};
  std::atomic<bool> asleep_{false};
};

}  // namespace rocefs
