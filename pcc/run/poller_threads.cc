#include "pcc/run/poller_threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "core/base/clock.h"
#include "pcc/api/register_access.h"

namespace rocefs {
namespace {

// Engine time as a function of the monotonic clock. The engine's numbers are untrusted: times are
// clipped to kLatest, so that sums do not overflow.
constexpr TimeNs kLatest = TimeNs{1} << 62;
constexpr uint64_t kMaxDilation = uint64_t{1} << 32;

struct Pace {
  TimeNs base, since, dilation;

  explicit Pace(const rocefs_signals_page& signals) {
    // Bounded: an engine that died during an update never completes it.
    for (unsigned tries = 0; tries < 1000; ++tries) {
      uint32_t before = load_announced(signals.clock_sequence);
      base = static_cast<TimeNs>(load_announced(signals.base_ns));
      since = static_cast<TimeNs>(load_announced(signals.since_ns));
      dilation = static_cast<TimeNs>(
          std::clamp<uint64_t>(load_announced(signals.dilation), 1, kMaxDilation));
      if (before % 2 == 0 && load_word(signals.clock_sequence) == before) return;
    }
  }
  TimeNs engine(TimeNs monotonic) const {
    TimeNs passed, now;
    bool lies = __builtin_sub_overflow(monotonic, since, &passed) ||
                __builtin_add_overflow(base, passed / dilation, &now);
    return lies ? kLatest : std::clamp<TimeNs>(now, 0, kLatest);
  }
  TimeNs monotonic(TimeNs engine) const {
    TimeNs left, at;
    bool never = __builtin_sub_overflow(engine, base, &left) ||
                 __builtin_mul_overflow(left, dilation, &left) ||
                 __builtin_add_overflow(since, left, &at);
    return never ? kNever : at;
  }
};

// Maximum wait of a thread: stop() and set_interval() do not wake it.
constexpr TimeNs kMaxWait = 10 * kMillisecond;

// Signals that the program's own threads handle; those raised by an algorithm itself stay
// unblocked.
sigset_t signals_of_others() {
  sigset_t set;
  ::sigfillset(&set);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&set, own);
  return set;
}

}  // namespace

TimeNs engine_now(const rocefs_signals_page& signals) {
  return Pace(signals).engine(monotonic_ns());
}

PollerThreads::PollerThreads(PccController& controller, const rocefs_signals_page& signals,
                             unsigned pollers, std::function<void()> first)
    : controller_(controller), signals_(signals), first_(std::move(first)) {
  sigset_t blocked = signals_of_others(), before;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  try {
    for (unsigned poller = 0; poller < pollers; ++poller) {
      threads_.emplace_back([this, poller] { run(poller); });
    }
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    stop();
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PollerThreads::~PollerThreads() {
  stop();
}

void PollerThreads::stop() {
  stopping_ = true;
  ::syscall(SYS_futex, &signals_.changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void PollerThreads::run(unsigned poller) {
  ::pthread_setname_np(::pthread_self(), fmt::format("pcc-{}", poller).c_str());
  ::prctl(PR_SET_TIMERSLACK, 1);
  if (first_) first_();
  while (!stopping_) {
    uint32_t changes = load_announced(signals_.changes);
    wait(controller_.poll(poller, engine_now(signals_)), changes);
  }
}

void PollerThreads::wait(TimeNs until, uint32_t changes) {
  Pace pace(signals_);
  TimeNs now = monotonic_ns();
  // Clipped in engine time: kNever does not fit the other clock.
  TimeNs latest = std::min(until, pace.engine(now + kMaxWait));
  TimeNs at = std::min(pace.monotonic(latest), now + kMaxWait);
  if (at <= now) return;
  timespec deadline{at / kSecond, at % kSecond};
  // Absolute deadline on the monotonic clock. The poller looks after any wakeup.
  ::syscall(SYS_futex, &signals_.changes, FUTEX_WAIT_BITSET, changes, &deadline, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

}  // namespace rocefs
