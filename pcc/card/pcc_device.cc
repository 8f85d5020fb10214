#include "pcc/card/pcc_device.h"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "core/base/clock.h"

namespace rocefs {

PccDevice::PccDevice(Parts parts)
    : device_(parts.device),
      engine_(parts.engine),
      parts_(std::move(parts)),
      backend_(parts_.make_backend(*this)) {}

PccDevice::~PccDevice() = default;

PccState PccDevice::advance(PccEvent event) {
  PccState before = std::exchange(state_, next_state(state_, event));
  const bool text_changed = rocefs::name_of(before).shown != rocefs::name_of(state_).shown;
  if (text_changed && state_changed_) state_changed_();
  return before;
}

void PccDevice::begin() {
  advance(PccEvent::kBind);
  forget();
}

void PccDevice::end(const Error& why, Answer<void> then) {
  if (program_) parts_.revoke(program_->id);
  if (program_) release_program();
  advance(PccEvent::kUnbind);
  orders_.abandon(why);
  control_.reset();
  last_error_.clear();
  forget();
  if (!works()) return then({});
  backend_->forget([this, then = std::move(then)](Result<void> forgotten) mutable {
    if (!forgotten) return then(std::move(forgotten));
    give_back(windows_, std::move(then));
  });
}

void PccDevice::forget() {
  algorithms_.clear();
  if (state_ != PccState::kUnbound && works()) algorithms_ = backend_->built_ins();
  built_ins_ = algorithms_.size();
  applied_.reset();
  load_report_.clear();
  changed();
}

const PccAlgorithmInfo* PccDevice::find(std::string_view name) const {
  for (const PccAlgorithmInfo& one : algorithms_) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const PccAlgorithmInfo* PccDevice::applied() const {
  if (!applied_) return nullptr;
  for (const PccAlgorithmInfo& one : algorithms_) {
    if (one.slot == *applied_) return &one;
  }
  return nullptr;
}

std::string_view PccDevice::name_of(unsigned slot) const {
  if (control_is_programs_) return "-";
  for (const PccAlgorithmInfo& one : algorithms_) {
    if (one.slot == slot) return one.name;
  }
  return "-";
}

void PccDevice::log(LogLevel level, const std::string& what) const {
  parts_.log(level, fmt::format("{}: PCC {}", device_.name(), what));
}

void PccDevice::order(std::function<void(TurnPtr)> act, Answer<void> answer) {
  orders_.add(
      [this, act = std::move(act)](TurnPtr turn) {
        if (state_ == PccState::kUnbound) {
          return turn->done(errorf(ENODEV, "{} has no driver", device_.name()));
        }
        if (Result<void> reached = parts_.reachable(); !reached) return turn->done(reached);
        act(std::move(turn));
      },
      std::move(answer));
}

void PccDevice::apply(const std::string& algorithm, std::optional<uint32_t> qpn,
                      Answer<void> answer) {
  auto act = [this, algorithm, qpn](TurnPtr turn) {
    if (algorithm == "none" && !qpn) return turn->done(apply_none());
    const PccAlgorithmInfo* info = find(algorithm);
    if (!info) return turn->done(errorf(EINVAL, "there is no algorithm '{}'", algorithm));
    if (qpn && !active()) return turn->done(Error{EINVAL, "PCC is not active"});
    backend_->apply(info->slot, qpn, [this, turn, qpn, slot = info->slot](Result<void> result) {
      if (turn->over()) return;
      if (result && !qpn) {
        applied_ = slot;
        changed();
      }
      turn->done(std::move(result));
    });
  };
  order(std::move(act), std::move(answer));
}

// The backend keeps what it has: a start without an applied algorithm is refused here.
Result<void> PccDevice::apply_none() {
  if (active()) return Error{EBUSY, "PCC is active"};
  applied_.reset();
  changed();
  return {};
}

Result<void> PccDevice::may_start() const {
  if (active()) return Error{EBUSY, "PCC is active already"};
  if (program_) return claimed_error();
  if (!applied()) return Error{EINVAL, "no algorithm is applied"};
  return {};
}

void PccDevice::start(unsigned pollers, unsigned interval_us, Answer<void> answer) {
  auto act = [this, pollers, interval_us](TurnPtr turn) {
    if (Result<void> may = may_start(); !may) return turn->done(may);
    advance(PccEvent::kStart);
    engine_.call<std::shared_ptr<SharedMemory>>(
        [this] {
          device_.registers().give_back(windows_);  // left over from a failed stop
          return device_.take_windows(windows_);
        },
        [this, turn, pollers, interval_us](Result<std::shared_ptr<SharedMemory>> taken) {
          if (turn->over()) return;
          if (taken) return run(turn, pollers, interval_us, std::move(*taken));
          advance(PccEvent::kStartFailed);
          turn->done(taken.error());
        });
  };
  order(std::move(act), std::move(answer));
}

// Starts the backend. The device's windows are taken.
void PccDevice::run(const TurnPtr& turn, unsigned pollers, unsigned interval_us,
                    std::shared_ptr<SharedMemory> control) {
  PccBackend::Run run{device_.registers().signals(), std::move(control), pollers, interval_us};
  backend_->start(run, [this, turn, run](Result<void> result) {
    if (turn->over()) return;
    if (result) return started(turn, run);
    advance(PccEvent::kStartFailed);
    give_back(windows_, [turn, why = result.error()](Result<void>) { turn->done(why); });
  });
}

void PccDevice::started(const TurnPtr& turn, const PccBackend::Run& run) {
  advance(PccEvent::kStarted);
  pollers_ = run.pollers;
  control_ = run.control;
  control_is_programs_ = false;
  last_error_.clear();
  log(LogLevel::kInfo, fmt::format("started: {}, {} {}", name_of(applied_.value_or(0)), pollers_,
                                   pollers_ == 1 ? "thread" : "threads"));
  turn->done({});
}

void PccDevice::stop(Answer<void> answer) {
  orders_.add(
      [this](TurnPtr turn) {
        if (program_) return turn->done(claimed_error());
        if (!active()) {
          return give_back(windows_, [turn](Result<void> given) { turn->done(given); });
        }
        backend_->stop([this, turn](Result<void> result) {
          if (turn->over()) return;
          settle_log();
          // A backend that failed to stop has died; pcc_died() says so, before this or behind it.
          const bool was_active = advance(PccEvent::kStopped) == PccState::kActive;
          if (was_active && result) log(LogLevel::kInfo, "stopped");
          give_back(windows_,
                    [turn, result](Result<void> given) { turn->done(result ? given : result); });
        });
      },
      std::move(answer));
}

// Retries EAGAIN: windows that are not returned stay taken for good.
void PccDevice::give_back(const WindowController& owner, Answer<void> answer) {
  engine_.call<void>(
      [this, &owner]() -> Result<void> {
        device_.registers().give_back(owner);
        return {};
      },
      [this, &owner, answer = std::move(answer)](Result<void> given) mutable {
        if (given || given.error().code != EAGAIN) return answer(std::move(given));
        engine_.tell_control([this, &owner, answer = std::move(answer)]() mutable {
          give_back(owner, std::move(answer));
        });
      });
}

// Changes the interval of an active run; the next run starts with the setting.
void PccDevice::set_interval(unsigned interval_us, Answer<void> answer) {
  orders_.add(
      [this, interval_us](TurnPtr turn) {
        if (!active()) return turn->done({});
        backend_->set_interval(interval_us,
                               [turn](Result<void> result) { turn->done(std::move(result)); });
      },
      std::move(answer));
}

void PccDevice::set_trace_calls(bool on) {
  const SharedMemory* page = signals();
  if (!page) return;
  std::atomic_ref(page->at<rocefs_signals_page>(0)->trace_calls)
      .store(on ? 1 : 0, std::memory_order_relaxed);
}

uint32_t PccDevice::slow_calls() const {
  if (!control_) return 0;
  return std::atomic_ref(control_->at<rocefs_control_page>(0)->slow_calls)
      .load(std::memory_order_relaxed);
}

void PccDevice::settle(Answer<void> answer) {
  orders_.add([](TurnPtr turn) { turn->done({}); }, std::move(answer));
}

namespace {

constexpr size_t kMaxRefusal = 8192;

Result<void> verdict(const PccLoaded& loaded) {
  std::string refused;
  for (const PccLoaded::File& file : loaded.files) {
    if (!file.loaded.empty()) continue;
    refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", file.name, file.reason);
  }
  if (refused.empty()) return {};
  return Error{ENOEXEC, refused.substr(0, kMaxRefusal)};
}

}  // namespace

// Keeps the order of loading: slots are reused.
void PccDevice::take_over(std::vector<PccAlgorithmInfo> all) {
  auto place = [this](const PccAlgorithmInfo& one) {
    return std::find_if(algorithms_.begin(), algorithms_.end(),
                        [&](const auto& known) { return known.name == one.name; }) -
           algorithms_.begin();
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  algorithms_ = std::move(all);
}

void PccDevice::load(const std::string& directory, bool force, Answer<void> answer) {
  auto act = [this, directory, force](TurnPtr turn) {
    backend_->load(directory, force, [this, turn](Result<PccLoaded> loaded) {
      if (turn->over()) return;
      if (!loaded) return turn->done(loaded.error());
      load_report_ = loaded->files;
      const std::string was = applied() ? applied()->name : "";
      take_over(std::move(loaded->algorithms));
      for (const PccLoaded::File& file : load_report_) {
        if (!file.loaded.empty()) {
          log(LogLevel::kInfo, fmt::format("loaded {} {}from {}", file.loaded,
                                           file.again ? "again " : "", file.name));
        }
      }
      if (applied_ && (!applied() || applied()->name != was)) {
        log(LogLevel::kInfo, fmt::format("{} is not applied any more", was));
        applied_.reset();
      }
      changed();
      turn->done(verdict(*loaded));
    });
  };
  order(std::move(act), std::move(answer));
}

Result<unsigned> PccDevice::slot_to_unload(const std::string& name) const {
  const PccAlgorithmInfo* info = find(name);
  if (!info) return errorf(EINVAL, "there is no algorithm '{}'", name);
  if (static_cast<size_t>(info - algorithms_.data()) < built_ins_) {
    return errorf(EPERM, "{} is built in", name);
  }
  if (applied_ == info->slot) return errorf(EBUSY, "{} is applied", name);
  return info->slot;
}

void PccDevice::unload(const std::string& algorithm, Answer<void> answer) {
  auto act = [this, algorithm](TurnPtr turn) {
    Result<unsigned> slot = slot_to_unload(algorithm);
    if (!slot) return turn->done(slot.error());
    backend_->unload(*slot, [this, turn, slot = *slot](Result<void> result) {
      if (turn->over()) return;
      if (result) {
        std::erase_if(algorithms_, [slot](const auto& one) { return one.slot == slot; });
        changed();
      }
      turn->done(std::move(result));
    });
  };
  order(std::move(act), std::move(answer));
}

Result<unsigned> PccDevice::slot_to_update(const std::string& name,
                                           const PccBackend::Assignments& changes) const {
  const PccAlgorithmInfo* info = find(name);
  if (!info) return errorf(EINVAL, "there is no algorithm '{}'", name);
  if (applied_ != info->slot) return errorf(EINVAL, "{} is not applied", name);
  for (const auto& change : changes) {
    const auto& all = info->parameters;
    bool known = std::any_of(all.begin(), all.end(),
                             [&](const auto& one) { return one.first == change.first; });
    if (!known) return errorf(EINVAL, "{} has no parameter '{}'", name, change.first);
  }
  return info->slot;
}

// Name and parameter names of an algorithm are fixed while it is loaded.
static bool same_names(const PccAlgorithmInfo& a, const PccAlgorithmInfo& b) {
  return a.name == b.name &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(),
                    b.parameters.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

void PccDevice::update(const std::string& algorithm, PccBackend::Assignments changes,
                       Answer<void> answer) {
  auto act = [this, algorithm, changes = std::move(changes)](TurnPtr turn) {
    Result<unsigned> slot = slot_to_update(algorithm, changes);
    if (!slot) return turn->done(slot.error());
    backend_->update(*slot, changes, [this, turn](Result<PccAlgorithmInfo> updated) {
      if (turn->over()) return;
      if (!updated) return turn->done(updated.error());
      take_values(*updated);
      turn->done({});
    });
  };
  order(std::move(act), std::move(answer));
}

void PccDevice::take_values(const PccAlgorithmInfo& now) {
  for (PccAlgorithmInfo& one : algorithms_) {
    if (one.slot == now.slot && same_names(one, now)) one = now;
  }
}

void PccDevice::refresh(Answer<void> answer) {
  if (!applied()) return answer({});
  backend_->read(*applied_, [this, alive = std::weak_ptr(alive_), answer = std::move(answer)](
                                const Result<PccAlgorithmInfo>& now) mutable {
    if (alive.expired()) return answer(Error{ENODEV, "the device has gone"});
    if (now) take_values(*now);
    answer({});
  });
}

void PccDevice::ask(std::function<void(Answer<std::string>)> question, Answer<std::string> answer) {
  auto said = std::make_shared<std::string>();
  auto act = [question = std::move(question), said](TurnPtr turn) {
    question([turn, said](Result<std::string> result) {
      if (!result) return turn->done(result.error());
      *said = std::move(*result);
      turn->done({});
    });
  };
  order(std::move(act), [said, answer = std::move(answer)](Result<void> result) mutable {
    if (!result) return answer(result.error());
    answer(std::move(*said));
  });
}

void PccDevice::echo(const std::string& message, Answer<std::string> answer) {
  ask([this, message](auto then) { backend_->echo(message, std::move(then)); }, std::move(answer));
}

void PccDevice::dump(uint32_t qpn, Answer<std::string> answer) {
  ask([this, qpn](auto then) { backend_->dump(qpn, std::move(then)); }, std::move(answer));
}

Error PccDevice::claimed_error() const {
  return errorf(EBUSY, "{} (pid {}) has claimed {}", program_->comm, program_->pid, name());
}

Result<void> PccDevice::may_claim() const {
  switch (state_) {
    case PccState::kUnbound:
      return errorf(ENODEV, "{} has no driver", name());
    case PccState::kIdle:
      return {};
    case PccState::kStarting:
    case PccState::kActive:
      return errorf(EBUSY, "PCC of {} is active", name());
    case PccState::kClaimed:
    case PccState::kProgramActive:
      return claimed_error();
  }
  return {};
}

Result<void> PccDevice::claim(const PccClaims::Program& program) {
  if (Result<void> may = may_claim(); !may) return may;
  program_ = program;
  advance(PccEvent::kClaim);
  return {};
}

void PccDevice::run_program(unsigned pollers, Answer<PccClaims::Pages> answer) {
  auto run = [this, pollers, id = program_->id,
              answer = std::move(answer)](Result<std::shared_ptr<SharedMemory>> taken) mutable {
    if (!taken) return answer(taken.error());
    // The program has gone; its windows are given back after this call.
    if (!program_ || program_->id != id) return;
    advance(PccEvent::kProgramStarted);
    control_is_programs_ = true;
    pollers_ = pollers;
    control_ = *taken;
    log(LogLevel::kInfo, fmt::format("started by {} (pid {}), {} {}", program_->comm, program_->pid,
                                     pollers, pollers == 1 ? "thread" : "threads"));
    answer(PccClaims::Pages{device_.registers().signals(), *taken});
  };
  engine_.call<std::shared_ptr<SharedMemory>>(
      [this] { return device_.take_windows(program_windows_); }, std::move(run));
}

void PccDevice::stop_program(Answer<void> answer) {
  if (advance(PccEvent::kProgramStopped) == PccState::kProgramActive) {
    log(LogLevel::kInfo, fmt::format("stopped by {} (pid {})", program_->comm, program_->pid));
  }
  give_back(program_windows_, std::move(answer));
}

void PccDevice::release_program() {
  settle_log();
  stop_program([](Result<void>) {});
  program_.reset();
  advance(PccEvent::kRelease);
}

void PccDevice::pcc_log(LogLevel level, std::string_view line) {
  auto say = [this](const std::string& left_out) {
    parts_.log(LogLevel::kWarning, fmt::format("{}: PCC: {}", device_.name(), left_out));
  };
  if (!log_budget_.admit(monotonic_ns(), line.size(), say)) return;
  parts_.log(level, fmt::format("{}: PCC: {}", device_.name(), line));
}

void PccDevice::settle_log() {
  log_budget_.settle([this](const std::string& left_out) {
    parts_.log(LogLevel::kWarning, fmt::format("{}: PCC: {}", device_.name(), left_out));
  });
}

// The backend answers pending orders itself.
void PccDevice::pcc_died(const std::string& why, bool named) {
  settle_log();
  bool was_active = advance(PccEvent::kDied) == PccState::kActive;
  last_error_ = why;
  if (!named && applied()) last_error_ += fmt::format(", while {} was applied", applied()->name);
  log(LogLevel::kErr, fmt::format("{}: {}", was_active ? "ended" : "failed", last_error_));
  forget();
  if (was_active) give_back(windows_, [](Result<void>) {});
}

}  // namespace rocefs
