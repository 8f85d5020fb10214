// UserThreads: a thread for each user, so that no user waits for another one's memory and files: a
// file system of the user's own may never answer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace rocefs {

class UserThreads {
 public:
  // `most`: users at a time, without the privileged ones.
  explicit UserThreads(size_t most) : most_(most) {}

  using Job = std::function<void()>;
  // Runs the job after the user's earlier ones. False: there are too many users, or no thread is to
  // be had. A thread ends some time after its last job; this object must live until then.
  bool post(uid_t user, bool privileged, Job job);

 private:
  struct Queue;
  void work(uid_t user, const std::shared_ptr<Queue>& queue);

  const size_t most_;
  std::mutex mutex_;
  std::map<uid_t, std::shared_ptr<Queue>> queues_;
};

}  // namespace rocefs
