// Engine: the packet core. A dedicated thread with one CoreIo and the scheduler; state that
// belongs to the scheduler is touched by this thread alone. Commands come through an inbox and are
// applied between events; answers go back through the control thread's loop.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/base/answer.h"
#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/base/histogram.h"
#include "core/loop/core_io.h"
#include "core/loop/inbox.h"
#include "core/loop/io_choice.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/loop/scheduler.h"

namespace rocefs {

// Work in progress, counted by the core's thread where it begins and ends. Periodic timers are not
// work.
struct Outstanding {
  int64_t packets = 0;
  int64_t requests = 0;  // work requests posted to a send queue
  int64_t flows = 0;
  int64_t settling = 0;  // done in engine time, not yet outside (a file being written)
  bool any() const { return packets != 0 || requests != 0 || flows != 0; }
};

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

// Time of an earlier engine, for one that continues it. In memory that both share: each field is
// consistent whenever the process dies.
struct SavedTime {
  std::atomic<TimeNs> now;  // virtual clock: the time; real clock: the latest published
  // The latest advance: its request id, and its end.
  std::atomic<uint64_t> advance;
  std::atomic<TimeNs> target;
};

class Engine {
 public:
  struct Options {
    ClockMode mode = ClockMode::kReal;
    uint64_t dilation = 1;
    TimeNs start = 0;               // engine time when it is created
    SavedTime* time = nullptr;      // outlives the engine; null: no takeover
    std::optional<IoKind> io = {};  // empty: as ROCEFS_LOOP says
  };

  // Fails with the reason where the wanted kind of I/O may not be used.
  static Result<std::unique_ptr<Engine>> create(const Options& options, PollLoop& control);
  ~Engine();

  // Control thread, once each. stop() drops outstanding commands with their answers.
  void start();
  void stop();

  // Any thread: runs `task` on the core, between events. False, and `task` kept, if the inbox is
  // full.
  [[nodiscard]] bool post(Task& task);
  // post() for the control thread: runs `work` on the core, then `answer` with its result on the
  // control thread. EAGAIN if the inbox is full. Before start(), both run at once.
  template <class T>
  void call(UniqueFunction<Result<T>()> work, Answer<T> answer);
  // Control thread: post() that never fails, for example to end an object of the core. Retries
  // later, in order, while the inbox is full.
  void post_retrying(Task task);
  // Any thread: the core polls its poller soon.
  void nudge();
  // Before start(), at most once; the poller outlives the engine's thread. Real clock.
  void set_poller(Poller& poller) { poller_ = &poller; }
  // Any thread: runs `task` on the control thread, later.
  void tell_control(Task task) { control_.post(std::move(task)); }

  // Core thread, or before start().
  Scheduler& scheduler() { return scheduler_; }
  CoreIo& io() { return *io_; }
  // Core thread: data has come from or gone to another thread, and more is likely: the core spins
  // for a moment instead of sleeping.
  void listen() { listens_ = true; }
  Outstanding& outstanding() { return outstanding_; }
  // While held, no event runs and engine time stops; commands are still served.
  void hold() { ++held_; }
  void release() { --held_; }
  // hold() until the token is destroyed, on any thread and even after the engine.
  using Pause = std::shared_ptr<const void>;
  Pause pause();
  // Core thread: the core's position in the run.
  Moment moment() const {
    Moment here = scheduler_.moment();
    if (mode_ == ClockMode::kReal) here.events = 0;  // replay cannot reproduce it
    return here;
  }

  // Runs `task` at that moment, between two events; at once if it has passed. Tasks of one moment
  // run in the order in which they were given, and only after all work that ended by then has
  // settled.
  using TaskId = std::pair<Moment, uint64_t>;
  TaskId at(Moment moment, Task task);
  // No effect if the task has run.
  void cancel(const TaskId& id) { agenda_.erase(id); }
  // Resets lateness and slips.
  void clear_statistics();

  // Core thread. Only under the virtual clock; one at a time (EBUSY). An advance with the `id` that
  // the previous engine had begun ends where that one would have; 0 is no id.
  // Advances by `duration`; answers on the control thread.
  void advance(TimeNs duration, Answer<void> answer, uint64_t id = 0);
  // Advances until no work is outstanding and no task is pending; ETIMEDOUT after `limit`.
  void advance_until_idle(TimeNs limit, Answer<void> answer, uint64_t id = 0);
  // Ends the advance in progress with `code`; no effect if there is none.
  void stop_advance(int code, std::string_view reason);

  // Any thread.
  ClockMode mode() const { return mode_; }
  IoKind io_kind() const { return io_->kind(); }
  // Why the core does without io_uring; empty if it does not.
  const std::string& why_poll() const { return why_poll_; }
  RealClock& clock() { return clock_; }
  // Monotonic, even when engine time slips.
  TimeNs now();
  const Histogram& lateness() const { return lateness_; }
  uint64_t slips() const { return slips_.get(); }
  uint64_t slipped_ns() const { return slipped_ns_.get(); }

 private:
  struct Advance {
    TimeNs target;
    bool until_idle;
    Answer<void> answer;
  };

  Engine(const Options& options, PollLoop& control, ChosenIo chosen);
  void run();
  void run_real();
  void run_virtual();
  void sleep(TimeNs wall_ns);
  void take_time();
  bool keep_spinning(Poller::Found found, bool more);
  void note_lag(TimeNs lag);
  void take_released();
  void retry_posts();
  TimeNs next_due() const;
  bool task_is_next(TimeNs limit) const;
  bool step(TimeNs limit);
  // Returns how far engine time slips.
  TimeNs note_lateness(TimeNs late);
  void finish_advance(Result<void> result);
  void begin_advance(TimeNs duration, bool until_idle, Answer<void> answer, uint64_t id);
  TimeNs target_of(TimeNs duration, uint64_t id);
  void publish_now();

  const ClockMode mode_;
  PollLoop& control_;
  std::unique_ptr<CoreIo> io_;
  const std::string why_poll_;
  RealClock clock_;
  Scheduler scheduler_;
  Outstanding outstanding_;
  Inbox inbox_;
  // Wakes the core from other threads; pauses may outlive the engine.
  struct Wake {
    Fd event;
    std::atomic<int> released{0};
    void call() const;
  };
  std::shared_ptr<Wake> wake_;
  std::deque<Task> retried_;              // control thread: posts that found the inbox full
  std::optional<LoopTimer> retry_timer_;  // control thread
  int held_ = 0;
  std::map<TaskId, Task> agenda_;
  uint64_t last_task_ = 0;
  std::unique_ptr<Advance> advance_;
  SavedTime own_time_{};
  SavedTime& time_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopping_{false};
  Poller* poller_ = nullptr;
  bool listens_ = false;
  TimeNs found_ = 0;  // wall time of the last input found
  TimeNs found_bulk_ = 0;
  TimeNs lag_slipped_ = 0;  // for the present lag
  Histogram lateness_;
  Counter slips_;
  Counter slipped_ns_;
  std::thread thread_;
};

template <class T>
void Engine::call(UniqueFunction<Result<T>()> work, Answer<T> answer) {
  if (!thread_.joinable()) return answer(work());
  // Shared, because a refused task must leave the answer to us.
  auto kept = std::make_shared<Answer<T>>(std::move(answer));
  Task task = [this, work = std::move(work), kept]() mutable {
    tell_control([kept = std::move(kept), result = std::make_shared<Result<T>>(work())]() mutable {
      (*kept)(*result);
    });
  };
  if (!post(task)) (*kept)(Error{EAGAIN, "too many commands are waiting for the engine"});
}

}  // namespace rocefs
