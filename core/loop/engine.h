// Engine: the packet cores and their clock. Commands come through an inbox and are applied between
// events; answers go back through the control thread's loop.
//
// With one core, its thread runs all there is. With several, each runs its part of the fabric; the
// first one runs in addition all that belongs to no part: commands, and the events of scheduler().
// Alone means: the others wait between two of their events. So whatever runs in a command may
// touch every part.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/answer.h"
#include "core/base/clock.h"
#include "core/base/histogram.h"
#include "core/loop/core_io.h"
#include "core/loop/engine_time.h"
#include "core/loop/inbox.h"
#include "core/loop/io_choice.h"
#include "core/loop/loop_timer.h"
#include "core/loop/packet_core.h"
#include "core/loop/poll_loop.h"
#include "core/loop/regions.h"
#include "core/loop/scheduler.h"

namespace rocefs {

// Time of an earlier engine, for one that continues it. In memory that both share: each field is
// consistent whenever the process dies.
struct SavedTime {
  std::atomic<TimeNs> now;  // virtual clock: the time; real clock: the latest published
  // The latest advance: its request id, and its end.
  std::atomic<uint64_t> advance;
  std::atomic<TimeNs> target;
};

class Engine final : private FirstCoreWork {
 public:
  struct Options {
    ClockMode mode = ClockMode::kReal;
    uint64_t dilation = 1;
    TimeNs start = 0;               // engine time when it is created
    SavedTime* time = nullptr;      // outlives the engine; null: no takeover
    std::optional<IoKind> io = {};  // empty: as ROCEFS_LOOP says
    size_t cores = 1;               // more than one only on the real clock
    // Virtual clock: the fabric is in so many regions, which that many threads run; 0: it is whole.
    size_t regions = 0, threads = 1;
  };

  // Fails with the reason where the wanted kind of I/O may not be used.
  static Result<std::unique_ptr<Engine>> create(const Options& options, PollLoop& control);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Control thread, once each. stop() drops outstanding commands with their answers.
  void start();
  void stop();

  // Any thread: runs `task` on the first core, alone, between events. False, and `task` kept, if
  // the inbox is full.
  [[nodiscard]] bool post(Task& task);
  // post() for the control thread: runs `work` on the core, then `answer` with its result on the
  // control thread. EAGAIN if the inbox is full. Before start(), both run at once.
  template <class T>
  void call(UniqueFunction<Result<T>()> work, Answer<T> answer);
  // Control thread: post() that never fails, for example to end an object of the core. Retries
  // later, in order, while the inbox is full.
  void post_retrying(Task task);
  // A core's thread, for what is not of its part: runs `task` on the first core, alone: at once if
  // that is where the caller is, or if there is one core or no thread; otherwise soon. Callers
  // bound the number of tasks.
  void alone(Task task);
  // Any thread: runs `task` on the control thread, later.
  void tell_control(Task task) { control_.post(std::move(task)); }

  // Never changes.
  size_t cores() const { return cores_.size(); }
  PacketCore& core(size_t number) { return *cores_[number]; }
  // The first core has all uplinks.
  CoreIo& io() { return core(0).io(); }
  void listen() { core(0).listen(); }
  Outstanding& outstanding() { return core(0).outstanding(); }
  // Null if the fabric is whole.
  Regions* regions() { return regions_ ? &*regions_ : nullptr; }
  // Number of events begun in the whole run. Alone, or after stop().
  uint64_t events_run() const {
    return scheduler_.events_run() + (regions_ ? regions_->events_run() : 0);
  }

  // The first core while it is alone, or before start(): for events of no part. With one core, its
  // scheduler.
  Scheduler& scheduler() { return scheduler_; }
  // While held, no event runs and engine time stops; commands are still served. A core's thread.
  void hold() { shared_.hold(); }
  void release() { shared_.release(); }
  // hold() until the token is destroyed, on any thread and even after the engine.
  using Pause = std::shared_ptr<const void>;
  Pause pause();
  // Core thread, in a command: the position in the run.
  Moment moment() const {
    Moment here = scheduler_.moment();
    if (mode() == ClockMode::kReal) here.events = 0;  // replay cannot reproduce it
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
  ClockMode mode() const { return shared_.mode(); }
  IoKind io_kind() const { return cores_.front()->io().kind(); }
  // Why the cores do without io_uring; empty if they do not.
  const std::string& why_poll() const { return why_poll_; }
  RealClock& clock() { return shared_.clock(); }
  // Monotonic, even when engine time slips.
  TimeNs now();
  // Adds the lateness of all cores to `sum`.
  void add_lateness(Histogram& sum) const;
  uint64_t slips() const { return shared_.slips().get(); }
  uint64_t slipped_ns() const { return shared_.slipped_ns().get(); }

 private:
  struct Advance {
    TimeNs target;
    bool until_idle;
    Answer<void> answer;
  };

  Engine(const Options& options, PollLoop& control, std::vector<ChosenIo> chosen);
  bool has_commands() const override { return !inbox_.empty() || !alone_tasks_.empty(); }
  void run_events(TimeNs limit, int most) override;
  void take_commands(TimeNs limit, int most) override;
  void run_virtual() override;
  void take_released() override;
  TimeNs next_due() const override;
  void run_alone(TimeNs limit, int most);
  void retry_posts();
  TimeNs next_event() { return regions_ ? regions_->next() : scheduler_.next(); }
  bool run_next(TimeNs limit) {
    return regions_ ? regions_->step(limit) : scheduler_.run_one(limit);
  }
  void pass(TimeNs now) { regions_ ? regions_->pass(now) : scheduler_.pass(now); }
  bool is_idle();
  Outstanding all_outstanding();
  bool task_is_next(TimeNs limit);
  bool step_or_task(TimeNs limit);
  // Runs the next task or event that is due by `limit`; false if there is none.
  bool step(TimeNs limit) { return agenda_.empty() ? run_next(limit) : step_or_task(limit); }
  void finish_advance(Result<void> result);
  void begin_advance(TimeNs duration, bool until_idle, Answer<void> answer, uint64_t id);
  TimeNs target_of(TimeNs duration, uint64_t id);
  void publish_now();

  PollLoop& control_;
  const std::string why_poll_;
  EngineTime shared_;
  std::vector<std::unique_ptr<PacketCore>> cores_;
  std::optional<Scheduler> own_scheduler_;  // with several cores
  Scheduler& scheduler_;
  std::optional<Regions> regions_;
  Inbox inbox_;
  Inbox alone_tasks_;
  bool is_alone_ = false;                 // first core
  std::deque<Task> retried_;              // control thread: posts that found the inbox full
  std::optional<LoopTimer> retry_timer_;  // control thread
  std::map<TaskId, Task> agenda_;
  uint64_t last_task_ = 0;
  std::unique_ptr<Advance> advance_;
  SavedTime own_time_{};
  SavedTime& time_;
};

template <class T>
void Engine::call(UniqueFunction<Result<T>()> work, Answer<T> answer) {
  if (!shared_.runs()) return answer(work());
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
