// Engine: the packet core. A dedicated thread with one io_uring and the scheduler; everything that
// hangs on the scheduler is touched by this thread alone. Commands come through an inbox and are
// applied between events; answers go back through the control thread's loop.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/answer.h"
#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/base/histogram.h"
#include "core/loop/inbox.h"
#include "core/loop/io_ring.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/loop/scheduler.h"

namespace rocefs {

// What is under way, counted where it begins and ends, on the core's thread. Periodic timers are
// not work.
struct Outstanding {
  int64_t packets = 0;
  int64_t requests = 0;  // work requests posted to a send queue
  int64_t flows = 0;
  int64_t settling = 0;  // done in engine time, but not yet in the world (a file being written)
  bool any() const { return packets != 0 || requests != 0 || flows != 0; }
};

// What the core looks at by itself, because others bring something to it without a call.
class Poller {
 public:
  virtual ~Poller() = default;
  // Core thread, between batches of events. `more`: events are due at once, so what can be handed
  // on in a larger lump may wait for them. What there was: much is work for other threads that will
  // take them a while.
  enum class Found { kNothing, kSome, kBulk };
  virtual Found poll(bool more) = 0;
  // The core is about to sleep: who brings something from now on must nudge it. False if there is
  // something already. In either case awake() follows.
  virtual bool may_sleep() = 0;
  virtual void awake() = 0;
  // For how long threads that have been given work have not had a turn on a CPU, in wall time; 0 if
  // all have. What they have begun does not count, however long it takes.
  virtual TimeNs lag() = 0;
};

// What an engine that goes on where another process ended needs to know of that one's time. In
// memory that both share: each field is whole whenever the process dies.
struct SavedTime {
  std::atomic<TimeNs> now;  // virtual clock: the time; real clock: the latest told
  // The advance that was begun last: whose it is, and where it ends.
  std::atomic<uint64_t> advance;
  std::atomic<TimeNs> target;
};

class Engine {
 public:
  struct Options {
    ClockMode mode = ClockMode::kReal;
    uint64_t dilation = 1;
    TimeNs start = 0;           // engine time when it is created
    SavedTime* time = nullptr;  // outlives it; null: nobody will go on
  };

  // Fails with the reason where io_uring may not be used.
  static Result<std::unique_ptr<Engine>> create(const Options& options, PollLoop& control);
  ~Engine();

  // Control thread, once each. What is outstanding at stop() is dropped with its answers.
  void start();
  void stop();

  // Any thread: runs `task` on the core, between events. False, and `task` kept, when too many
  // wait.
  [[nodiscard]] bool post(Task& task);
  // post() for the control thread: runs `work` on the core, then `answer` with its result on the
  // control thread. EAGAIN when too many commands wait. Before start(), both run at once.
  template <class T>
  void call(UniqueFunction<Result<T>()> work, Answer<T> answer);
  // Control thread: post() for what must not be lost, as the end of something that the core keeps:
  // when too many wait it is tried again later, after what was insisted on before.
  void post_retrying(Task task);
  // Any thread: the core looks at its pollers soon.
  void nudge();
  // Before start(), once at most; it lives as long as the engine runs. Real clock.
  void set_poller(Poller& poller) { poller_ = &poller; }
  // Any thread: runs `task` on the control thread, later.
  void tell_control(Task task) { control_.post(std::move(task)); }

  // Core thread, or before start().
  Scheduler& scheduler() { return scheduler_; }
  IoRing& ring() { return *ring_; }
  // Core thread: others have been heard, or spoken to. They are likely to say more: for a moment
  // the core listens instead of sleeping.
  void listen() { listens_ = true; }
  Outstanding& outstanding() { return outstanding_; }
  // While held, no event runs and engine time stands; commands are still served.
  void hold() { ++held_; }
  void release() { --held_; }
  // The same until the token is let go of, on any thread and even after the engine.
  using Pause = std::shared_ptr<const void>;
  Pause pause();
  // Core thread: where in the run the core is.
  Moment moment() const {
    Moment here = scheduler_.moment();
    if (mode_ == ClockMode::kReal) here.events = 0;  // no replay could find it again
    return here;
  }

  // Runs `task` at that place in the run, between two events; at once when it has gone by. Tasks of
  // one moment run in the order in which they were given; none runs before what has ended by then
  // has settled.
  using TaskId = std::pair<Moment, uint64_t>;
  TaskId at(Moment moment, Task task);
  // Nothing if it has run.
  void cancel(const TaskId& id) { agenda_.erase(id); }
  // Lateness and slips begin anew.
  void clear_statistics();

  // Core thread. Only under the virtual clock; one at a time (EBUSY). An advance whose `name` the
  // engine before this one had begun ends where that one's would have; 0 is no name.
  // Lets `duration` pass; answers on the control thread.
  void advance(TimeNs duration, Answer<void> answer, uint64_t name = 0);
  // Lets time pass until nothing is outstanding and no task is to be run; ETIMEDOUT after `limit`.
  void advance_until_idle(TimeNs limit, Answer<void> answer, uint64_t name = 0);
  // Ends the advance under way with `code`; nothing if there is none.
  void stop_advance(int code, std::string_view reason);

  // Any thread.
  ClockMode mode() const { return mode_; }
  RealClock& clock() { return clock_; }
  // Never goes back, though engine time slips.
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

  Engine(const Options& options, PollLoop& control, std::unique_ptr<IoRing> ring);
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
  // How far engine time slips because of it.
  TimeNs note_lateness(TimeNs late);
  void finish_advance(Result<void> result);
  void begin_advance(TimeNs duration, bool until_idle, Answer<void> answer, uint64_t name);
  TimeNs target_of(TimeNs duration, uint64_t name);
  void publish_now();

  const ClockMode mode_;
  PollLoop& control_;
  std::unique_ptr<IoRing> ring_;
  RealClock clock_;
  Scheduler scheduler_;
  Outstanding outstanding_;
  Inbox inbox_;
  // What other threads wake the core with; pauses may outlive the engine.
  struct Wake {
    Fd event;
    std::atomic<int> released{0};
    void call() const;
  };
  std::shared_ptr<Wake> wake_;
  std::deque<Task> retried_;              // control thread: there was no room for them
  std::optional<LoopTimer> retry_timer_;  // control thread, when it is wanted
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
  TimeNs found_ = 0;  // wall time when there was something to poll, or others to listen to
  TimeNs found_bulk_ = 0;
  TimeNs lag_slipped_ = 0;  // for the lag that there is
  Histogram lateness_;
  Counter slips_;
  Counter slipped_ns_;
  std::thread thread_;
};

template <class T>
void Engine::call(UniqueFunction<Result<T>()> work, Answer<T> answer) {
  if (!thread_.joinable()) return answer(work());
  // Shared, because a refused task must leave the answer in our hands.
  auto kept = std::make_shared<Answer<T>>(std::move(answer));
  Task task = [this, work = std::move(work), kept]() mutable {
    tell_control([kept = std::move(kept), result = std::make_shared<Result<T>>(work())]() mutable {
      (*kept)(*result);
    });
  };
  if (!post(task)) (*kept)(Error{EAGAIN, "too many commands are waiting for the engine"});
}

}  // namespace rocefs
