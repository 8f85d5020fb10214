#include "core/engine.h"

#include <sys/eventfd.h>

#include <algorithm>

namespace rocefs {
namespace {

constexpr size_t kInboxLimit = 4096;
constexpr int kBatch = 64;                       // events between looks at the inbox
constexpr TimeNs kSpin = 50 * kMicrosecond;      // deadlines nearer than this are polled for
constexpr TimeNs kSlipAfter = 5 * kMillisecond;  // wall time that the core may be behind

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const Options& options, PollLoop& control) {
  auto ring = IoRing::create(256);
  if (!ring) return ring.error();
  return std::unique_ptr<Engine>(new Engine(options, control, std::move(*ring)));
}

Engine::Engine(const Options& options, PollLoop& control, std::unique_ptr<IoRing> ring)
    : mode_(options.mode),
      control_(control),
      ring_(std::move(ring)),
      clock_(options.dilation, options.start),
      inbox_(kInboxLimit),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      published_now_(options.start),
      settled_now_(options.start) {
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
  uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

bool Engine::post(Task& task) {
  if (!inbox_.post(task)) return false;
  if (asleep_.load(std::memory_order_seq_cst)) {
    uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }
  return true;
}

TimeNs Engine::now() {
  TimeNs told = published_now_.load(std::memory_order_acquire);
  if (mode_ == ClockMode::kVirtual) return told;
  TimeNs now = clock_.now();
  while (told < now && !published_now_.compare_exchange_weak(told, now)) {
  }
  return std::max(told, now);
}

TimeNs Engine::settled_now() {
  return mode_ == ClockMode::kVirtual ? settled_now_.load(std::memory_order_acquire) : now();
}

void Engine::run() {
  ring_->enable();
  ring_->watch(wake_.get(), [this] {
    uint64_t count;
    (void)!::read(wake_.get(), &count, sizeof count);
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
  if (inbox_.empty() && !stopping_.load()) {
    ring_->wait(wall_ns);
  } else {
    ring_->poll();
  }
  asleep_.store(false, std::memory_order_seq_cst);
}

void Engine::run_real() {
  TimeNs wall = clock_.now();
  if (held_ == 0 && scheduler_.next() <= wall) {
    wall -= note_lateness(wall - scheduler_.next());
    for (int i = 0; i < kBatch && held_ == 0 && scheduler_.run_one(wall); ++i) {
    }
  }
  // Input from outside is stamped max(now, wall), but never ahead of an event that is still due.
  if (held_ == 0) scheduler_.pass(std::max(scheduler_.now(), std::min(wall, scheduler_.next())));
  inbox_.drain();
  ring_->poll();
  if (held_ > 0) return sleep(kNever);
  TimeNs next = scheduler_.next();
  if (next == kNever) return sleep(kNever);
  TimeNs gap = (next - clock_.now()) * static_cast<TimeNs>(clock_.dilation());
  if (gap > kSpin) sleep(gap - kSpin / 2);
}

// When the core was away for long, engine time slips: no timer fires ahead of what was there
// before.
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
  inbox_.drain();
  if (!advance_ || held_ > 0) {
    published_now_.store(scheduler_.now(), std::memory_order_release);
    return sleep(kNever);
  }
  for (int i = 0; i < kBatch && held_ == 0 && inbox_.empty(); ++i) {
    if (advance_->until_idle && !outstanding_.any()) {
      if (outstanding_.settling > 0) return sleep(kNever);  // its end is posted to the inbox
      return finish_advance({});
    }
    if (scheduler_.run_one(advance_->target)) continue;
    scheduler_.pass(advance_->target);
    if (!advance_->until_idle) return finish_advance({});
    return finish_advance(errorf(ETIMEDOUT, "still {} flows, {} work requests and {} packets",
                                 outstanding_.flows, outstanding_.requests, outstanding_.packets));
  }
  ring_->poll();
  published_now_.store(scheduler_.now(), std::memory_order_release);
}

void Engine::advance(TimeNs duration, Answer<void> answer) {
  begin_advance(duration, false, std::move(answer));
}

void Engine::advance_until_idle(TimeNs limit, Answer<void> answer) {
  begin_advance(limit, true, std::move(answer));
}

void Engine::begin_advance(TimeNs duration, bool until_idle, Answer<void> answer) {
  Error refusal;
  if (mode_ != ClockMode::kVirtual) {
    refusal = {EOPNOTSUPP, "the clock is real: time passes by itself"};
  } else if (advance_) {
    refusal = {EBUSY, "another advance is under way"};
  } else if (duration > kNever - 1 - scheduler_.now()) {
    refusal = {ERANGE, "the end of time"};
  }
  auto pending = std::make_unique<Advance>(
      Advance{refusal.code ? 0 : scheduler_.now() + duration, until_idle, std::move(answer)});
  if (refusal.code == 0) {
    advance_ = std::move(pending);
    return;
  }
  tell_control([pending = std::move(pending), refusal] { pending->answer(refusal); });
}

void Engine::stop_advance(int code, std::string_view reason) {
  if (advance_) finish_advance(Error{code, std::string(reason)});
}

void Engine::finish_advance(Result<void> result) {
  published_now_.store(scheduler_.now(), std::memory_order_release);
  settled_now_.store(scheduler_.now(), std::memory_order_release);
  tell_control([advance = std::move(advance_), result = std::move(result)]() mutable {
    advance->answer(std::move(result));
  });
}

}  // namespace rocefs
