// Worker: a helper thread for calls that may block: opening and reading files of users. Tasks run
// one after the other; results go back through the control thread's loop.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/base/task.h"

namespace rocefs {

class Worker {
 public:
  // The thread has a root and a working directory of its own, which a task may change.
  Worker();
  // Runs all queued tasks, then ends.
  ~Worker();
  // Any thread.
  void post(Task task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rocefs
