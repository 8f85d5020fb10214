// EngineTime: what all packet cores of an engine share: the clock, whether events may run, the gate
// at which they wait for each other, and how far each has come.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/base/clock.h"
#include "core/base/counter.h"
#include "core/loop/core_gate.h"

namespace rocefs {

class EngineTime {
 public:
  EngineTime(ClockMode mode, uint64_t dilation, TimeNs start, size_t cores)
      : mode_(mode),
        clock_(dilation, start),
        several_(cores > 1),
        cores_(cores),
        progress_(std::make_unique<Progress[]>(cores)),
        gate_(cores - 1) {}

  // Any thread.
  ClockMode mode() const { return mode_; }
  RealClock& clock() { return clock_; }
  bool several() const { return several_; }
  CoreGate& gate() { return gate_; }

  // A core's thread. While held, no event runs and engine time stops.
  void hold() { held_.fetch_add(1, std::memory_order_relaxed); }
  void release(int count = 1) { held_.fetch_sub(count, std::memory_order_seq_cst); }
  bool held() const { return held_.load(std::memory_order_relaxed) > 0; }
  // The same, for a core that has said that it sleeps: who releases nudges after that.
  bool held_now() const { return held_.load(std::memory_order_seq_cst) > 0; }
  // Whether a core may run another event.
  bool goes_on() const { return !held() && !gate_.is_shut(); }

  // Whether the cores have threads, and whether those are to end.
  bool runs() const { return runs_.load(); }
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  void set_runs(bool runs) { runs_.store(runs); }
  void stop() { stopping_.store(true); }

  // A core's thread. Makes engine time pass `latest` no more than it must, for a core or other
  // threads that are late; returns how far it slips. Several cores that were away at once slip it
  // once.
  TimeNs slip(TimeNs latest) {
    std::lock_guard lock(mutex_);
    const TimeNs excess = clock_.now() - latest;
    if (excess <= 0) return 0;
    clock_.slip(excess);
    slips_.add();
    slipped_ns_.add(static_cast<uint64_t>(excess));
    return excess;
  }
  // A core's thread: it runs all that is due by then, or sleeps until then.
  void note_turn(size_t core, TimeNs due) {
    progress_[core].due.store(due, std::memory_order_relaxed);
  }
  // Any thread, before it wakes a core up; the first of several counts.
  void note_woken(size_t core, TimeNs at) {
    TimeNs none = kNever;
    progress_[core].woken.compare_exchange_strong(none, at, std::memory_order_relaxed);
  }
  // The core itself, when it is awake.
  void note_awake(size_t core) { progress_[core].woken.store(kNever, std::memory_order_relaxed); }
  // Since when a core other than this one has had something to do, and no turn; kNever if none has.
  TimeNs longest_wait(size_t core) const {
    TimeNs since = kNever;
    for (size_t i = 0; i < cores_; ++i) {
      if (i == core) continue;
      since = std::min({since, progress_[i].due.load(std::memory_order_relaxed),
                        progress_[i].woken.load(std::memory_order_relaxed)});
    }
    return since;
  }
  const Counter& slips() const { return slips_; }
  const Counter& slipped_ns() const { return slipped_ns_; }
  // Core thread, in a command.
  void clear_slips() {
    slips_.set(0);
    slipped_ns_.set(0);
  }

 private:
  struct alignas(64) Progress {
    std::atomic<TimeNs> due{kNever}, woken{kNever};
  };

  const ClockMode mode_;
  RealClock clock_;
  const bool several_;
  const size_t cores_;
  const std::unique_ptr<Progress[]> progress_;
  std::atomic<int> held_{0};
  CoreGate gate_;
  std::atomic<bool> runs_{false};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // one core at a time moves the clock
  Counter slips_;
  Counter slipped_ns_;
};

}  // namespace rocefs
