#include "core/loop/engine.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace rocefs {
namespace {

constexpr size_t kInboxLimit = 4096;
constexpr int kVirtualBatch = 256;           // events between looks at the inbox
constexpr TimeNs kPostRetry = kMillisecond;  // for post_retrying()

std::vector<std::unique_ptr<PacketCore>> cores_of(EngineTime& time, FirstCoreWork& work,
                                                  std::vector<ChosenIo>& chosen, TimeNs start) {
  std::vector<std::unique_ptr<PacketCore>> cores;
  for (ChosenIo& one : chosen) {
    cores.push_back(std::make_unique<PacketCore>(
        time, cores.size(), cores.empty() ? &work : nullptr, std::move(one.io), start));
  }
  return cores;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const Options& options, PollLoop& control) {
  assert(options.cores == 1 || options.mode == ClockMode::kReal);
  assert(options.regions == 0 || options.mode == ClockMode::kVirtual);
  Result<std::optional<IoKind>> wanted = options.io;
  if (!options.io) wanted = wanted_io();
  if (!wanted) return wanted.error();
  std::vector<ChosenIo> chosen;
  while (chosen.size() < options.cores) {
    Result<ChosenIo> io = choose_io(chosen.empty() ? *wanted : chosen.front().io->kind(), 256);
    if (!io) return io.error();
    chosen.push_back(std::move(*io));
  }
  return std::unique_ptr<Engine>(new Engine(options, control, std::move(chosen)));
}

Engine::Engine(const Options& options, PollLoop& control, std::vector<ChosenIo> chosen)
    : control_(control),
      why_poll_(chosen.front().why_poll),
      shared_(options.mode, options.dilation, options.start, chosen.size()),
      cores_(cores_of(shared_, *this, chosen, options.start)),
      scheduler_(shared_.several() ? own_scheduler_.emplace() : core(0).scheduler()),
      inbox_(kInboxLimit),
      alone_tasks_(SIZE_MAX),
      time_(options.time ? *options.time : own_time_) {
  time_.now.store(options.start, std::memory_order_release);
  scheduler_.pass(options.start);
  if (options.regions > 0) regions_.emplace(scheduler_, options.regions, options.threads);
}

Engine::~Engine() {
  stop();
}

void Engine::start() {
  shared_.set_runs(true);
  for (const auto& core : cores_) core->start();
}

void Engine::stop() {
  if (!shared_.runs()) return;
  shared_.stop();
  for (const auto& core : cores_) core->join();
  shared_.set_runs(false);
}

bool Engine::post(Task& task) {
  if (!inbox_.post(task)) return false;
  core(0).nudge();
  return true;
}

void Engine::alone(Task task) {
  if (!shared_.several() || !shared_.runs() || (core(0).runs_here() && is_alone_)) return task();
  (void)alone_tasks_.post(task);
  core(0).nudge();
}

void Engine::post_retrying(Task task) {
  if (!shared_.runs()) return task();
  retried_.push_back(std::move(task));
  if (retried_.size() == 1) retry_posts();
}

void Engine::retry_posts() {
  while (!retried_.empty() && post(retried_.front())) retried_.pop_front();
  if (retried_.empty()) return;
  if (!retry_timer_) retry_timer_.emplace(control_, [this] { retry_posts(); });
  retry_timer_->arm(kPostRetry);
}

Engine::Pause Engine::pause() {
  hold();
  if (mode() == ClockMode::kVirtual) publish_now();
  auto let_go = [wake = core(0).wake()](const void*) {
    wake->released.fetch_add(1);
    wake->call();
  };
  return Pause(core(0).wake().get(), let_go);
}

void Engine::take_released() {
  std::atomic<int>& released = core(0).wake()->released;
  if (released.load(std::memory_order_relaxed) == 0) return;
  shared_.release(released.exchange(0));
  for (const auto& core : cores_) core->nudge();
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
bool Engine::task_is_next(TimeNs limit) {
  if (agenda_.empty()) return false;
  const Moment& wanted = agenda_.begin()->first.first;
  TimeNs next = next_event();
  if (wanted.at > limit || next < wanted.at) return false;
  if (next > wanted.at) return true;
  Moment here = scheduler_.moment();
  return (here.at == wanted.at ? here.events : 0) >= wanted.events;
}

// A window of regions ends before the next task.
bool Engine::step_or_task(TimeNs limit) {
  const TimeNs wanted = agenda_.begin()->first.first.at;
  if (!task_is_next(limit)) {
    return run_next(regions_ && wanted > next_event() ? std::min(limit, wanted - 1) : limit);
  }
  auto first = agenda_.extract(agenda_.begin());
  pass(std::max(scheduler_.now(), wanted));
  first.mapped()();
  return true;
}

void Engine::add_lateness(Histogram& sum) const {
  for (const auto& core : cores_) sum.add(core->lateness());
}

void Engine::clear_statistics() {
  for (const auto& core : cores_) core->clear_lateness();
  shared_.clear_slips();
}

TimeNs Engine::now() {
  TimeNs told = time_.now.load(std::memory_order_acquire);
  if (mode() == ClockMode::kVirtual) return told;
  TimeNs now = clock().now();
  while (told < now && !time_.now.compare_exchange_weak(told, now)) {
  }
  return std::max(told, now);
}

void Engine::publish_now() {
  time_.now.store(scheduler_.now(), std::memory_order_release);
}

// One core: there is no gate.
void Engine::run_events(TimeNs limit, int most) {
  for (int i = 0; i < most && !shared_.held() && step(limit); ++i) {
  }
}

void Engine::take_commands(TimeNs limit, int most) {
  if (!shared_.several()) {
    inbox_.drain();
  } else if (has_commands() || (next_due() <= limit && !shared_.held())) {
    run_alone(limit, most);
  }
}

// A core that sleeps wakes up: it may have more to do, or something earlier.
void Engine::run_alone(TimeNs limit, int most) {
  shared_.gate().shut();
  is_alone_ = true;
  core(0).begin_alone();
  for (const auto& core : cores_) core->take_time();
  for (int i = 0; i < most && !shared_.held() && step(limit); ++i) {
  }
  if (!shared_.held()) {
    scheduler_.pass(std::max(scheduler_.now(), std::min(clock().now(), next_due())));
  }
  alone_tasks_.drain();
  inbox_.drain();
  core(0).end_alone();
  is_alone_ = false;
  shared_.gate().open();
  for (size_t i = 1; i < cores_.size(); ++i) core(i).nudge();
}

Outstanding Engine::all_outstanding() {
  Outstanding sum = outstanding();
  if (regions_) sum += regions_->outstanding();
  return sum;
}

// Whether nothing is left to do. Not all is added up while a flow runs.
bool Engine::is_idle() {
  if (!agenda_.empty() || outstanding().flows > 0) return false;
  if (regions_ && (regions_->any_flow() || !regions_->between_windows())) return false;
  return !all_outstanding().any();
}

void Engine::run_virtual() {
  take_released();
  inbox_.drain();
  if (!advance_ || shared_.held()) {
    publish_now();
    return core(0).sleep(kNever);
  }
  for (int i = 0; i < kVirtualBatch && !shared_.held() && inbox_.empty(); ++i) {
    const bool idle = advance_->until_idle && is_idle();
    if (idle || task_is_next(advance_->target)) {
      if (all_outstanding().settling > 0)
        return core(0).sleep(kNever);  // until a post to the inbox
      if (idle) return finish_advance({});
    }
    if (step(advance_->target)) continue;
    pass(advance_->target);
    if (!advance_->until_idle) return finish_advance({});
    const Outstanding left = all_outstanding();
    return finish_advance(
        errorf(ETIMEDOUT, "still {} flows, {} work requests, {} packets and {} scheduled stores",
               left.flows, left.requests, left.packets, agenda_.size()));
  }
  io().poll();
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
  if (mode() != ClockMode::kVirtual) {
    refusal = {EOPNOTSUPP, "the clock is real: it cannot be advanced"};
  } else if (advance_) {
    refusal = {EBUSY, "another advance is in progress"};
  } else if (duration > kNever - 1 - scheduler_.now()) {
    refusal = {EINVAL, "advance exceeds the clock's range"};
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
