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

// How engine time follows the monotonic clock. An engine may say whatever it likes: times have no
// place beyond kLatest, where nothing that is added to them is past the end.
constexpr TimeNs kLatest = TimeNs{1} << 62;
constexpr uint64_t kMostDilation = uint64_t{1} << 32;

struct Pace {
  TimeNs base, since, dilation;

  explicit Pace(const rocefs_signals_page& signals) {
    // An engine that died while it changed them changes them no more.
    for (unsigned tries = 0; tries < 1000; ++tries) {
      uint32_t before = load_announced(signals.clock_sequence);
      base = static_cast<TimeNs>(load_announced(signals.base_ns));
      since = static_cast<TimeNs>(load_announced(signals.since_ns));
      dilation = static_cast<TimeNs>(
          std::clamp<uint64_t>(load_announced(signals.dilation), 1, kMostDilation));
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

// A thread that waits looks around this often, so that stop() and other intervals reach it, which
// wake nobody.
constexpr TimeNs kLongestWait = 10 * kMillisecond;

// A program's own threads get its signals; what an algorithm itself raises stays with it.
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
  // In engine time first: kNever has no place on the other clock.
  TimeNs latest = std::min(until, pace.engine(now + kLongestWait));
  TimeNs at = std::min(pace.monotonic(latest), now + kLongestWait);
  if (at <= now) return;
  timespec deadline{at / kSecond, at % kSecond};
  // Absolute, on the monotonic clock. Whatever ends it, the poller looks.
  ::syscall(SYS_futex, &signals_.changes, FUTEX_WAIT_BITSET, changes, &deadline, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

}  // namespace rocefs
