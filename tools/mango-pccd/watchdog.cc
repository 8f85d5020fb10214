#include "tools/mango-pccd/watchdog.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "core/base/clock.h"
#include "core/process/process_status.h"
#include "tools/mango-pccd/last_words.h"

namespace rocefs {

Watchdog::Watchdog(PccController& controller, std::function<void(std::string_view)> log)
    : controller_(controller),
      log_(std::move(log)),
      event_(::eventfd(0, EFD_CLOEXEC)),
      calls_(MANGO_PCC_MAX_THREADS),
      thread_([this] { run(); }) {
  thread_.detach();  // ends with the process
}

void Watchdog::begin() {
  ++busy_;
  if (!asleep_.exchange(false)) return;
  uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

void Watchdog::set_loading(const std::string& file) {
  std::lock_guard lock(mutex_);
  loading_ = file;
  ++loads_;
}

void Watchdog::run() {
  for (;;) {
    wait();
    TimeNs now = monotonic_ns();
    // After a stall of the watchdog itself the clocks restart: the supervised threads may have
    // stalled too.
    if (now - last_look_ > kMaxCall / 2) {
      for (Seen& seen : calls_) seen.since = now;
      load_.since = now;
    }
    last_look_ = now;
    look(now);
  }
}

// Waits for a tick, or, after a quiet period, for the next scope of supervision. The end of the
// daemon ends the process in both cases.
void Watchdog::wait() {
  quiet_ticks_ = busy_ > 0 ? 0 : quiet_ticks_ + 1;
  int timeout = static_cast<int>(kTick / kMillisecond);
  if (quiet_ticks_ >= kQuietTicks) {
    asleep_ = true;
    if (busy_ > 0) {
      asleep_ = false;
    } else {
      timeout = -1;
    }
  }
  pollfd watched[] = {{kDaemonSocket, 0, 0}, {event_.get(), POLLIN, 0}};
  if (::poll(watched, 2, timeout) <= 0) return;
  if (watched[0].revents) ::_exit(0);
  uint64_t count;
  (void)!::read(event_.get(), &count, sizeof count);
  quiet_ticks_ = 0;
}

void Watchdog::look(TimeNs now) {
  if (std::optional<std::string> damage = controller_.damage()) end_because(*damage);
  look_at_calls(now);
  look_at_loading(now);
}

void Watchdog::look_at_calls(TimeNs now) {
  if (unsigned changes = changes_; changes != std::exchange(seen_changes_, changes)) {
    slow_calls_.forget();
  }
  unsigned pollers = pollers_;
  for (unsigned i = 0; i < pollers; ++i) {
    PccController::Call call = controller_.current_call(i);
    Seen& seen = calls_[i];
    if (call.number != seen.number) {
      seen = {call.number, now};
      continue;
    }
    if (call.number == 0) continue;
    TimeNs taken = now - seen.since;
    if (taken >= kMaxCall && is_debugged()) {
      seen.since = now;
      continue;
    }
    if (taken >= kMaxCall) {
      end_because(fmt::format("algorithm {} has not returned for {} s on QP {}", call.algorithm,
                              kMaxCall / kSecond, call.qpn));
    }
    if (taken < kSlowCall || std::exchange(seen.slow, true)) continue;
    controller_.note_slow_call(i, call.number);
    if (!slow_calls_.admit(call.algorithm, now)) continue;
    log_(fmt::format("algorithm {} takes longer than {} ms on QP {}", call.algorithm,
                     kSlowCall / kMillisecond, call.qpn));
  }
}

// A debugger stops the algorithm for as long as its user thinks.
bool Watchdog::is_debugged() {
  const bool traced = debug_ && is_traced(::getpid());
  if (traced && !told_debugged_) log_("a debugger is attached: the watchdog waits");
  told_debugged_ = traced;
  return traced;
}

void Watchdog::look_at_loading(TimeNs now) {
  std::lock_guard lock(mutex_);
  if (load_.number != loads_) load_ = {loads_, now};
  if (loading_.empty() || now - load_.since < kMaxLoad) return;
  if (is_debugged()) {
    load_.since = now;
    return;
  }
  end_because(fmt::format("{} has not been loaded after {} s", loading_, kMaxLoad / kSecond));
}

}  // namespace rocefs
