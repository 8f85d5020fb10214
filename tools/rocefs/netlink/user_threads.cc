#include "tools/rocefs/netlink/user_threads.h"

#include <chrono>
#include <condition_variable>
#include <system_error>
#include <thread>

namespace rocefs {

struct UserThreads::Queue {
  std::deque<Job> jobs;
  std::condition_variable filled;
};

bool UserThreads::post(uid_t user, bool privileged, Job job) {
  std::lock_guard lock(mutex_);
  auto it = queues_.find(user);
  if (it == queues_.end()) {
    if (!privileged && queues_.size() >= most_) return false;
    it = queues_.emplace(user, std::make_shared<Queue>()).first;
    try {
      std::thread([this, user, queue = it->second] { work(user, queue); }).detach();
    } catch (const std::system_error&) {
      queues_.erase(it);
      return false;
    }
  }
  it->second->jobs.push_back(std::move(job));
  it->second->filled.notify_one();
  return true;
}

void UserThreads::work(uid_t user, const std::shared_ptr<Queue>& queue) {
  constexpr std::chrono::seconds kIdle{1};
  std::unique_lock lock(mutex_);
  for (;;) {
    queue->filled.wait_for(lock, kIdle, [&] { return !queue->jobs.empty(); });
    if (queue->jobs.empty()) break;
    Job job = std::move(queue->jobs.front());
    queue->jobs.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
  queues_.erase(user);
}

}  // namespace rocefs
