#include "core/loop/poll_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <limits>

#include "core/base/clock.h"

namespace rocefs {

PollLoop::PollLoop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      inbox_(std::numeric_limits<size_t>::max() / 2) {
  watch(event_.get(), [this] {
    uint64_t count;
    (void)!::read(event_.get(), &count, sizeof count);
  });
}

void PollLoop::watch(int fd, std::function<void()> ready) {
  add(fd, EPOLLIN, std::move(ready));
}

void PollLoop::watch_priority(int fd, std::function<void()> ready) {
  add(fd, EPOLLPRI, std::move(ready));
}

void PollLoop::add(int fd, uint32_t events, std::function<void()> ready) {
  handlers_[fd] = {++last_serial_, std::move(ready)};
  control(EPOLL_CTL_ADD, fd, events);
}

// An event carries its watch's id: the descriptor number may be reused before the event is handled.
void PollLoop::control(int operation, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = uint64_t{handlers_.at(fd).serial} << 32 | static_cast<uint32_t>(fd);
  [[maybe_unused]] int rc = ::epoll_ctl(epoll_.get(), operation, fd, &event);
  assert(rc == 0);
}

void PollLoop::watch_output(int fd, bool wanted) {
  control(EPOLL_CTL_MOD, fd, EPOLLIN | (wanted ? EPOLLOUT : 0u));
}

void PollLoop::unwatch(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(fd);
}

void PollLoop::post(Task task) {
  [[maybe_unused]] bool posted = inbox_.post(task);
  assert(posted);
  if (asleep_.load(std::memory_order_seq_cst)) wake();
}

void PollLoop::wake() {
  uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

// Time-out for epoll_wait(2) in milliseconds; -1: none.
int PollLoop::patience() const {
  if (timers_.empty()) return -1;
  TimeNs left = std::max<TimeNs>(timers_.begin()->first - monotonic_ns(), 0);
  return static_cast<int>(std::min<TimeNs>((left + kMillisecond - 1) / kMillisecond, INT_MAX));
}

// Runs the timers that are due now; timers that they arm run after other handlers.
void PollLoop::run_timers() {
  if (timers_.empty()) return;
  for (TimeNs now = monotonic_ns(); !timers_.empty() && timers_.begin()->first <= now;) {
    Timed& timer = *timers_.begin()->second;
    timers_.erase(timers_.begin());
    timer.expire();
  }
}

void PollLoop::run() {
  std::array<epoll_event, 16> events;
  while (!stopping_.load()) {
    inbox_.drain();
    asleep_.store(true, std::memory_order_seq_cst);
    int timeout = inbox_.empty() && !stopping_.load() ? patience() : 0;
    int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout);
    asleep_.store(false, std::memory_order_seq_cst);
    for (int i = 0; i < count; ++i) {
      auto handler = handlers_.find(static_cast<int>(events[i].data.u64));
      if (handler == handlers_.end()) continue;
      if (handler->second.serial != events[i].data.u64 >> 32) continue;
      auto ready = handler->second.ready;  // a handler may unwatch itself
      ready();
    }
    run_timers();
  }
  inbox_.drain();
  stopping_.store(false);
}

void PollLoop::stop() {
  stopping_.store(true);
  wake();
}

}  // namespace rocefs
