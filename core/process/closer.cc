#include "core/process/closer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

namespace rocefs {

class Closer::Queue {
 public:
  static void add(const std::shared_ptr<Queue>& self, uid_t owner, Fd fd,
                  std::shared_ptr<const void> charge);
  size_t waiting();
  void end();

 private:
  struct Item {
    Fd fd;
    std::shared_ptr<const void> charge;
  };
  struct Lane {
    std::deque<Item> items;
    bool busy = false;  // a thread closes one of them
  };

  void run();
  void close_next(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // held for moments only
  std::condition_variable changed_;
  std::map<uid_t, Lane> lanes_;
  std::deque<uid_t> ready_;  // users whose lanes have items and no thread
  size_t threads_ = 0, idle_ = 0, waiting_ = 0;
  bool ended_ = false;
};

// Lives as long as one of the closer's copies.
class Closer::Handle {
 public:
  ~Handle() { queue->end(); }
  const std::shared_ptr<Queue> queue = std::make_shared<Queue>();
};

Closer::Closer() : handle_(std::make_shared<Handle>()) {}
Closer::~Closer() = default;

void Closer::close(Fd fd, uid_t owner, std::shared_ptr<const void> charge) const {
  Queue::add(handle_->queue, owner, std::move(fd), std::move(charge));
}

size_t Closer::waiting() const {
  return handle_->queue->waiting();
}

// Without a new thread the item waits for an existing one, or for the next item.
void Closer::Queue::add(const std::shared_ptr<Queue>& self, uid_t owner, Fd fd,
                        std::shared_ptr<const void> charge) {
  std::lock_guard lock(self->mutex_);
  Lane& lane = self->lanes_[owner];
  if (!lane.busy && lane.items.empty()) self->ready_.push_back(owner);
  lane.items.push_back({std::move(fd), std::move(charge)});
  ++self->waiting_;
  if (self->idle_ >= self->ready_.size()) return self->changed_.notify_one();
  if (self->ready_.empty() || self->threads_ == kMaxThreads) return;
  try {
    std::thread([self] { self->run(); }).detach();
    ++self->threads_;
  } catch (const std::system_error&) {
  }
}

size_t Closer::Queue::waiting() {
  std::lock_guard lock(mutex_);
  return waiting_;
}

void Closer::Queue::end() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// Runs until the queue is empty; one idle thread stays.
void Closer::Queue::run() {
  ::prctl(PR_SET_NAME, "rocefs-closer");
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (!ready_.empty() || (!ended_ && idle_ == 0)) {
    if (!ready_.empty()) {
      close_next(lock);
      continue;
    }
    ++idle_;
    changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
    --idle_;
  }
  --threads_;
}

void Closer::Queue::close_next(std::unique_lock<std::mutex>& lock) {
  uid_t owner = ready_.front();
  ready_.pop_front();
  Lane& lane = lanes_[owner];
  Item item = std::move(lane.items.front());
  lane.items.pop_front();
  lane.busy = true;
  lock.unlock();
  item.fd.reset();
  item.charge.reset();
  lock.lock();
  --waiting_;
  lane.busy = false;
  if (lane.items.empty()) {
    lanes_.erase(owner);
  } else {
    ready_.push_back(owner);
  }
}

void StrangerFd::hang_up() {
  if (fd_) ::shutdown(fd_.get(), SHUT_RDWR);
  reset();
}

}  // namespace rocefs
