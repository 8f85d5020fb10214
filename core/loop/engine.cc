#include "core/loop/engine.h"

#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "core/loop/time_slice.h"

namespace rocefs {
namespace {

constexpr size_t kInboxLimit = 4096;
// Events between polls of other sources. Each poll costs a system call and cache lines: with 64 an
// uplink is a fifth slower. 256 take some tens of microseconds.
constexpr int kBatch = 256;
constexpr TimeNs kSpin = 50 * kMicrosecond;           // polls for deadlines nearer than this
constexpr TimeNs kSpinAfterWork = 20 * kMicrosecond;  // polls so long after the last input
constexpr TimeNs kYieldAfterBulk = 200 * kMicrosecond;
constexpr TimeNs kTurn = 2 * kMicrosecond;       // a thread on another CPU has started within it
constexpr TimeNs kPostRetry = kMillisecond;      // for post_retrying()
constexpr TimeNs kSlipAfter = 5 * kMillisecond;  // tolerated lateness of the core, wall time

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const Options& options, PollLoop& control) {
  Result<std::optional<IoKind>> wanted = options.io;
  if (!options.io) wanted = wanted_io();
  if (!wanted) return wanted.error();
  Result<ChosenIo> chosen = choose_io(*wanted, 256);
  if (!chosen) return chosen.error();
  return std::unique_ptr<Engine>(new Engine(options, control, std::move(*chosen)));
}

Engine::Engine(const Options& options, PollLoop& control, ChosenIo chosen)
    : mode_(options.mode),
      control_(control),
      io_(std::move(chosen.io)),
      why_poll_(std::move(chosen.why_poll)),
      clock_(options.dilation, options.start),
      inbox_(kInboxLimit),
      wake_(std::make_shared<Wake>()),
      time_(options.time ? *options.time : own_time_) {
  time_.now.store(options.start, std::memory_order_release);
  wake_->event = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  scheduler_.pass(options.start);
}

Engine::~Engine() {
  stop();
}

void Engine::start() {
  thread_ = std::thread([this] { run(); });
}

void Engine::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  wake_->call();
  thread_.join();
}

bool Engine::post(Task& task) {
  if (!inbox_.post(task)) return false;
  nudge();
  return true;
}

void Engine::post_retrying(Task task) {
  if (!thread_.joinable()) return task();
  retried_.push_back(std::move(task));
  if (retried_.size() == 1) retry_posts();
}

void Engine::retry_posts() {
  while (!retried_.empty() && post(retried_.front())) retried_.pop_front();
  if (retried_.empty()) return;
  if (!retry_timer_) retry_timer_.emplace(control_, [this] { retry_posts(); });
  retry_timer_->arm(kPostRetry);
}

void Engine::nudge() {
  if (asleep_.load(std::memory_order_seq_cst)) wake_->call();
}

void Engine::Wake::call() const {
  uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof one);
}

Engine::Pause Engine::pause() {
  hold();
  if (mode_ == ClockMode::kVirtual) publish_now();
  auto let_go = [wake = wake_](const void*) {
    wake->released.fetch_add(1);
    wake->call();
  };
  return Pause(wake_.get(), let_go);
}

void Engine::take_released() {
  if (wake_->released.load(std::memory_order_relaxed) == 0) return;
  held_ -= wake_->released.exchange(0);
}

Engine::TaskId Engine::at(Moment moment, Task task) {
  TaskId id{moment, ++last_task_};
  agenda_.emplace(id, std::move(task));
  return id;
}

TimeNs Engine::next_due() const {
  if (agenda_.empty()) return scheduler_.next();
  return std::min(scheduler_.next(), std::max(agenda_.begin()->first.first.at, scheduler_.now()));
}

// Whether the agenda's first task comes before the scheduler's next event.
bool Engine::task_is_next(TimeNs limit) const {
  if (agenda_.empty()) return false;
  const Moment& wanted = agenda_.begin()->first.first;
  TimeNs next = scheduler_.next();
  if (wanted.at > limit || next < wanted.at) return false;
  if (next > wanted.at) return true;
  Moment here = scheduler_.moment();
  return (here.at == wanted.at ? here.events : 0) >= wanted.events;
}

// Runs the next task or event that is due by `limit`; false if there is none.
bool Engine::step(TimeNs limit) {
  if (!task_is_next(limit)) return scheduler_.run_one(limit);
  auto first = agenda_.extract(agenda_.begin());
  scheduler_.pass(std::max(scheduler_.now(), first.key().first.at));
  first.mapped()();
  return true;
}

void Engine::clear_statistics() {
  lateness_.clear();
  slips_.set(0);
  slipped_ns_.set(0);
}

TimeNs Engine::now() {
  TimeNs told = time_.now.load(std::memory_order_acquire);
  if (mode_ == ClockMode::kVirtual) return told;
  TimeNs now = clock_.now();
  while (told < now && !time_.now.compare_exchange_weak(told, now)) {
  }
  return std::max(told, now);
}

void Engine::publish_now() {
  time_.now.store(scheduler_.now(), std::memory_order_release);
}

void Engine::run() {
  ask_for_short_slices();
  io_->enable();
  io_->watch(wake_->event.get(), [this] {
    uint64_t count;
    (void)!::read(wake_->event.get(), &count, sizeof count);
  });
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (mode_ == ClockMode::kReal) {
      run_real();
    } else {
      run_virtual();
    }
  }
}

void Engine::sleep(TimeNs wall_ns) {
  asleep_.store(true, std::memory_order_seq_cst);
  bool idle = !poller_ || poller_->may_sleep();
  if (idle && inbox_.empty() && !stopping_.load() && wake_->released.load() == 0) {
    io_->wait(wall_ns);
  }
  asleep_.store(false, std::memory_order_seq_cst);
  take_time();
  io_->poll();
  if (poller_) poller_->awake();
}

// Input from outside is stamped max(now, wall), but never ahead of an event that is still due.
void Engine::take_time() {
  if (mode_ != ClockMode::kReal || held_ > 0) return;
  scheduler_.pass(std::max(scheduler_.now(), std::min(clock_.now(), next_due())));
}

void Engine::run_real() {
  take_released();
  TimeNs wall = clock_.now();
  if (poller_ && held_ == 0 && next_due() <= wall) {
    note_lag(poller_->lag());
    wall = clock_.now();
  }
  if (held_ == 0 && next_due() <= wall) {
    wall -= note_lateness(wall - next_due());
    for (int i = 0; i < kBatch && held_ == 0 && step(wall); ++i) {
    }
  }
  take_time();
  inbox_.drain();
  bool more = held_ == 0 && next_due() <= wall;
  Poller::Found found = poller_ ? poller_->poll(more) : Poller::Found::kNothing;
  io_->poll();
  if (held_ > 0) return sleep(kNever);
  if (keep_spinning(found, more)) return;
  TimeNs next = next_due();
  if (next == kNever) return sleep(kNever);
  TimeNs gap = (next - clock_.now()) * static_cast<TimeNs>(clock_.dilation());
  if (gap > kSpin) sleep(gap - kSpin / 2);
}

// Threads that move bytes for the engine are part of the NIC: while they get no CPU, engine time
// slips, as it does when the core gets none.
void Engine::note_lag(TimeNs lag) {
  TimeNs excess = (lag - kSlipAfter) / static_cast<TimeNs>(clock_.dilation()) - lag_slipped_;
  if (lag <= kSlipAfter) {
    lag_slipped_ = 0;
  } else if (excess > 0) {
    lag_slipped_ += excess;
    clock_.slip(excess);
    slips_.add();
    slipped_ns_.add(static_cast<uint64_t>(excess));
  }
}

// A source that has just sent data is likely to send more: the core stays awake for a while. After
// bulk work it yields the CPU to the threads that have it, and waits longer, because waking up
// costs more. After little work it does not yield, because sched_yield(2) puts it behind all
// spinning programs; a thread that still gets no CPU most likely waits for this one, so the core
// sleeps, and loses no turn by it.
bool Engine::keep_spinning(Poller::Found found, bool more) {
  TimeNs now = monotonic_ns();
  if (found != Poller::Found::kNothing || std::exchange(listens_, false)) found_ = now;
  if (found == Poller::Found::kBulk) found_bulk_ = now;
  bool bulk = now - found_bulk_ < kYieldAfterBulk;
  if (now - found_ >= kSpinAfterWork && !bulk) return false;
  bool waits = found == Poller::Found::kNothing && !more;
  if (!waits) return true;
  if (!bulk) return !poller_ || poller_->lag() < kTurn;
  ::sched_yield();
  return true;
}

// After a long absence of the core engine time slips: no timer fires ahead of earlier input.
TimeNs Engine::note_lateness(TimeNs late) {
  lateness_.add(late * static_cast<TimeNs>(clock_.dilation()));
  TimeNs allowed = kSlipAfter / static_cast<TimeNs>(clock_.dilation());
  if (late <= allowed) return 0;
  TimeNs excess = late - allowed;
  clock_.slip(excess);
  slips_.add();
  slipped_ns_.add(static_cast<uint64_t>(excess));
  return excess;
}

void Engine::run_virtual() {
  take_released();
  inbox_.drain();
  if (!advance_ || held_ > 0) {
    publish_now();
    return sleep(kNever);
  }
  for (int i = 0; i < kBatch && held_ == 0 && inbox_.empty(); ++i) {
    bool idle = advance_->until_idle && !outstanding_.any() && agenda_.empty();
    if (idle || task_is_next(advance_->target)) {
      if (outstanding_.settling > 0) return sleep(kNever);  // until a post to the inbox
      if (idle) return finish_advance({});
    }
    if (step(advance_->target)) continue;
    scheduler_.pass(advance_->target);
    if (!advance_->until_idle) return finish_advance({});
    return finish_advance(
        errorf(ETIMEDOUT, "still {} flows, {} work requests, {} packets and {} scheduled stores",
               outstanding_.flows, outstanding_.requests, outstanding_.packets, agenda_.size()));
  }
  io_->poll();
  publish_now();
}

void Engine::advance(TimeNs duration, Answer<void> answer, uint64_t id) {
  begin_advance(duration, false, std::move(answer), id);
}

void Engine::advance_until_idle(TimeNs limit, Answer<void> answer, uint64_t id) {
  begin_advance(limit, true, std::move(answer), id);
}

// time_.advance is valid only while the target is.
TimeNs Engine::target_of(TimeNs duration, uint64_t id) {
  if (id != 0 && time_.advance.load() == id) {
    return std::max(time_.target.load(), scheduler_.now());
  }
  TimeNs target = scheduler_.now() + duration;
  time_.advance.store(0);
  time_.target.store(target);
  time_.advance.store(id);
  return target;
}

void Engine::begin_advance(TimeNs duration, bool until_idle, Answer<void> answer, uint64_t id) {
  Error refusal;
  if (mode_ != ClockMode::kVirtual) {
    refusal = {EOPNOTSUPP, "the clock is real: it cannot be advanced"};
  } else if (advance_) {
    refusal = {EBUSY, "another advance is in progress"};
  } else if (duration > kNever - 1 - scheduler_.now()) {
    refusal = {ERANGE, "advance exceeds the clock's range"};
  }
  auto pending = std::make_unique<Advance>(Advance{0, until_idle, std::move(answer)});
  if (refusal.code == 0) {
    pending->target = target_of(duration, id);
    advance_ = std::move(pending);
    return;
  }
  tell_control([pending = std::move(pending), refusal] { pending->answer(refusal); });
}

void Engine::stop_advance(int code, std::string_view reason) {
  if (advance_) finish_advance(Error{code, std::string(reason)});
}

void Engine::finish_advance(Result<void> result) {
  publish_now();
  tell_control([advance = std::move(advance_), result = std::move(result)]() mutable {
    advance->answer(std::move(result));
  });
}

}  // namespace rocefs
