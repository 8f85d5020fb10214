#include "tools/rocefs/daemon/heartbeat.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <memory>

namespace rocefs {

Heartbeat::Heartbeat(TimeNs period, PollLoop& loop, Engine& engine, std::function<void()> alive)
    : loop_(loop),
      engine_(engine),
      alive_(std::make_shared<std::function<void()>>(std::move(alive))),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  timespec every{period / kSecond, period % kSecond};
  itimerspec times{every, every};
  ::timerfd_settime(timer_.get(), 0, &times, nullptr);
  loop_.watch(timer_.get(), [this] { beat(); });
  beat();
}

Heartbeat::~Heartbeat() {
  loop_.unwatch(timer_.get());
}

void Heartbeat::beat() {
  uint64_t missed;
  (void)!::read(timer_.get(), &missed, sizeof missed);
  std::weak_ptr<std::function<void()>> alive = alive_;
  engine_.call<void>([] { return Result<void>(); },
                     [alive](Result<void> done) {
                       auto still = alive.lock();
                       if (still && done) (*still)();
                     });
}

}  // namespace rocefs
