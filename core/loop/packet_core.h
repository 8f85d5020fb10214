// PacketCore: one thread that runs a part of the fabric, with a scheduler, a CoreIo and a poller of
// its own. An engine has one, or several on the real clock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "core/base/fd.h"
#include "core/base/histogram.h"
#include "core/loop/core_io.h"
#include "core/loop/engine_time.h"
#include "core/loop/inbox.h"
#include "core/loop/outstanding.h"
#include "core/loop/scheduler.h"

namespace rocefs {

// Source of input that the core polls, because it comes without a call (doorbells in shared
// memory).
class Poller {
 public:
  virtual ~Poller() = default;
  // Core thread, between batches of events. `more`: events are due now, so work that could be
  // handed on in a larger batch may wait for them. Found: kBulk is work that keeps other threads
  // busy for a while.
  enum class Found { kNothing, kSome, kBulk };
  virtual Found poll(bool more) = 0;
  // The core is about to sleep: new input must nudge it from now on. False if there is input
  // already. awake() follows in either case.
  virtual bool may_sleep() = 0;
  virtual void awake() = 0;
  // Wall time that threads with queued work have waited for a CPU; 0 if all have had one. Work that
  // a thread has begun does not count.
  virtual TimeNs lag() = 0;
};

// CoreWork: what a core's part of the fabric does between batches of events. The core's thread.
class CoreWork {
 public:
  // From enter() to leave(), its thread alone touches the part. The first core leaves while it is
  // alone, when it may touch all parts.
  virtual void enter() = 0;
  virtual void leave() = 0;
  // Takes a bounded part of what other cores have sent. False if there is nothing.
  virtual bool take() = 0;
  // Whether there is something to take. What comes later nudges the core.
  virtual bool has_more() const = 0;
  // Due time of the first that take() has left; kNever if it has left nothing.
  virtual TimeNs first_left() const = 0;

 protected:
  ~CoreWork() = default;
};

// FirstCoreWork: what the first core does besides its part of the fabric: commands, and all events
// if there is one core. Its thread.
class FirstCoreWork {
 public:
  virtual void take_released() = 0;
  // Due time of the next event or task of no part; kNever if there is none.
  virtual TimeNs next_due() const = 0;
  virtual bool has_commands() const = 0;
  // One core: runs events and tasks that are due by `limit`, that many at most.
  virtual void run_events(TimeNs limit, int most) = 0;
  // Real clock: runs the commands, and with several cores the events and tasks of no part.
  virtual void take_commands(TimeNs limit, int most) = 0;
  // A turn of the virtual clock.
  virtual void run_virtual() = 0;

 protected:
  ~FirstCoreWork() = default;
};

class PacketCore {
 public:
  // `work` of the first core, number 0; null for others.
  PacketCore(EngineTime& time, size_t number, FirstCoreWork* work, std::unique_ptr<CoreIo> io,
             TimeNs start);
  PacketCore(const PacketCore&) = delete;
  PacketCore& operator=(const PacketCore&) = delete;

  size_t number() const { return number_; }
  // Own thread; the first core while it is alone; or before the engine starts.
  Scheduler& scheduler() { return scheduler_; }
  Outstanding& outstanding() { return outstanding_; }
  // Own thread, or before the engine starts.
  CoreIo& io() { return *io_; }
  const CoreIo& io() const { return *io_; }
  // Own thread: data has come from or gone to another thread, and more is likely: the core
  // spins for a moment instead of sleeping.
  void listen() { listens_ = true; }

  // Any thread: the core looks soon at what other threads have given it. A system call only if it
  // sleeps, until the first of several callers has made it.
  void nudge();
  // Any thread: runs `task` on this core's thread between two events, while other cores run, for
  // calls of its CoreIo. At once on that thread, and where no thread runs.
  void run(Task task);
  // Before the engine starts, at most once; the poller outlives the thread. Real clock.
  void set_poller(Poller& poller) { poller_ = &poller; }
  // The same of the work.
  void set_work(CoreWork& work) { part_ = &work; }
  // Any thread.
  const Histogram& lateness() const { return lateness_; }
  // Any thread: whether this is the core's.
  bool runs_here() const { return std::this_thread::get_id() == id_.load(); }

  // For the engine. Wakes the core from other threads; pauses may outlive the engine.
  struct Wake {
    Fd event;
    std::atomic<int> released{0};  // pauses that have ended, for the first core
    void call() const;
  };
  const std::shared_ptr<Wake>& wake() const { return wake_; }
  void start();
  // After EngineTime::stop().
  void join();
  // The first core, alone or under the virtual clock.
  void take_time();
  void sleep(TimeNs wall_ns) { sleep(wall_ns, time_.held()); }
  void clear_lateness() { lateness_.clear(); }
  void begin_alone() {
    if (part_) part_->leave();
  }
  void end_alone() {
    if (part_) part_->enter();
  }

 private:
  void work();
  void work_real();
  void run_events(TimeNs limit);
  TimeNs next_due() const;
  void enter();
  void leave();
  bool has_orders() const;
  void sleep(TimeNs wall_ns, bool held);
  bool keep_spinning(Poller::Found found, bool more);
  void wait_for_others(TimeNs wall);
  void note_lag(TimeNs lag);
  // Returns how far engine time slips.
  TimeNs note_lateness(TimeNs wall);

  EngineTime& time_;
  const size_t number_;
  FirstCoreWork* const work_;
  const std::unique_ptr<CoreIo> io_;
  Scheduler scheduler_;
  Outstanding outstanding_;
  const std::shared_ptr<Wake> wake_ = std::make_shared<Wake>();
  // Number of times that the core fell asleep, plus that of times it was woken: odd while it
  // sleeps. Apart: others look at it for each packet.
  alignas(64) std::atomic<uint64_t> sleeps_{0};
  alignas(64) Poller* poller_ = nullptr;
  CoreWork* part_ = nullptr;  // with several cores
  bool listens_ = false;
  TimeNs found_ = 0;  // wall time of the last input found
  TimeNs found_bulk_ = 0;
  TimeNs lag_slipped_ = 0;  // for the present lag
  TimeNs looked_at_ = 0;    // engine time of the latest look at the other cores
  Histogram lateness_;
  Inbox tasks_;  // of run(), whose callers bound their number
  std::atomic<std::thread::id> id_{};
  std::thread thread_;
};

}  // namespace rocefs
