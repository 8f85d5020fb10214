#include "tools/rocefs-top/watcher.h"

#include <sys/eventfd.h>

#include <utility>

namespace rocefs::top {

Watcher::Watcher(LookReader& reader)
    : reader_(reader),
      done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Watcher::~Watcher() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watcher::ask() {
  {
    std::lock_guard lock(mutex_);
    asked_ = true;
  }
  changed_.notify_one();
}

std::optional<Result<Look>> Watcher::take() {
  uint64_t count = 0;
  (void)!::read(done_.get(), &count, sizeof count);
  std::lock_guard lock(mutex_);
  return std::exchange(look_, std::nullopt);
}

void Watcher::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return asked_ || ending_; });
      if (ending_) return;
    }
    Result<Look> look = reader_.look();
    {
      std::lock_guard lock(mutex_);
      look_.emplace(std::move(look));
      asked_ = false;
    }
    const uint64_t one = 1;
    (void)!::write(done_.get(), &one, sizeof one);
  }
}

}  // namespace rocefs::top
