#include "pcc/card/pcc_device.h"

#include <algorithm>
#include <cerrno>

namespace rocefs {

PccDevice::PccDevice(Parts parts)
    : device_(parts.device), engine_(parts.engine), parts_(std::move(parts)) {}

PccDevice::~PccDevice() = default;

void PccDevice::begin() {
  backend_ = parts_.make_backend(*this);
  forget();
}

void PccDevice::end(const Error& why, Answer<void> then) {
  active_ = false;
  std::unique_ptr<PccBackend> gone = std::move(backend_);
  orders_.abandon(why);
  gone.reset();
  control_.reset();
  last_error_.clear();
  forget();
  give_back(std::move(then));
}

void PccDevice::forget() {
  algorithms_.clear();
  if (backend_) algorithms_ = backend_->built_ins();
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
        if (!works()) return turn->done(errorf(ENODEV, "{} has no driver", device_.name()));
        if (Result<void> reached = parts_.reachable(); !reached) return turn->done(reached);
        act(std::move(turn));
      },
      std::move(answer));
}

void PccDevice::apply(const std::string& algorithm, std::optional<uint32_t> qpn,
                      Answer<void> answer) {
  auto act = [this, algorithm, qpn](TurnPtr turn) {
    const PccAlgorithmInfo* info = find(algorithm);
    if (!info) return turn->done(errorf(ENOENT, "there is no algorithm '{}'", algorithm));
    if (qpn && !active_) return turn->done(Error{EINVAL, "PCC is not active"});
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

void PccDevice::start(unsigned pollers, unsigned interval_us, Answer<void> answer) {
  auto act = [this, pollers, interval_us](TurnPtr turn) {
    if (active_) return turn->done(Error{EBUSY, "PCC is active already"});
    if (!applied()) return turn->done(Error{EINVAL, "no algorithm is applied"});
    engine_.call<std::shared_ptr<SharedMemory>>(
        [this] {
          device_.registers().give_back(windows_);  // if that is still to be done
          return device_.registers().take(windows_);
        },
        [this, turn, pollers, interval_us](Result<std::shared_ptr<SharedMemory>> taken) {
          if (turn->over()) return;
          if (!taken) return turn->done(taken.error());
          run(turn, pollers, interval_us, std::move(*taken));
        });
  };
  order(std::move(act), std::move(answer));
}

// The windows are ours.
void PccDevice::run(const TurnPtr& turn, unsigned pollers, unsigned interval_us,
                    std::shared_ptr<SharedMemory> control) {
  PccBackend::Run run{device_.registers().signals(), std::move(control), pollers, interval_us};
  backend_->start(run, [this, turn, run](Result<void> result) {
    if (turn->over()) return;
    if (result) return started(turn, run);
    give_back([turn, why = result.error()](Result<void>) { turn->done(why); });
  });
}

void PccDevice::started(const TurnPtr& turn, const PccBackend::Run& run) {
  active_ = true;
  pollers_ = run.pollers;
  control_ = run.control;
  last_error_.clear();
  log(LogLevel::kInfo, fmt::format("started: {}, {} {}", name_of(applied_.value_or(0)), pollers_,
                                   pollers_ == 1 ? "thread" : "threads"));
  turn->done({});
}

void PccDevice::stop(Answer<void> answer) {
  orders_.add(
      [this](TurnPtr turn) {
        if (!active_) return give_back([turn](Result<void> given) { turn->done(given); });
        backend_->stop([this, turn](Result<void> result) {
          if (turn->over()) return;
          // Whoever does not even stop has died, and that was told.
          if (std::exchange(active_, false)) log(LogLevel::kInfo, "stopped");
          give_back([turn, result](Result<void> given) { turn->done(result ? given : result); });
        });
      },
      std::move(answer));
}

// Again is harmless; and is what to do when the engine has too much to do.
void PccDevice::give_back(Answer<void> answer) {
  engine_.call<void>(
      [this]() -> Result<void> {
        device_.registers().give_back(windows_);
        return {};
      },
      std::move(answer));
}

// A run learns it; the next one begins with it.
void PccDevice::set_interval(unsigned interval_us, Answer<void> answer) {
  orders_.add(
      [this, interval_us](TurnPtr turn) {
        if (!active_) return turn->done({});
        backend_->set_interval(interval_us,
                               [turn](Result<void> result) { turn->done(std::move(result)); });
      },
      std::move(answer));
}

void PccDevice::settle(Answer<void> answer) {
  orders_.add([](TurnPtr turn) { turn->done({}); }, std::move(answer));
}

namespace {

Result<void> verdict(const PccLoaded& loaded) {
  std::string refused;
  for (const PccLoaded::File& file : loaded.files) {
    if (!file.loaded.empty()) continue;
    refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", file.name, file.reason);
  }
  if (refused.empty()) return {};
  return Error{ENOEXEC, refused};
}

}  // namespace

void PccDevice::load(const std::string& directory, Answer<void> answer) {
  auto act = [this, directory](TurnPtr turn) {
    backend_->load(directory, [this, turn](Result<PccLoaded> loaded) {
      if (turn->over()) return;
      if (!loaded) return turn->done(loaded.error());
      load_report_ = loaded->files;
      algorithms_ = loaded->algorithms;
      for (const PccLoaded::File& file : load_report_) {
        if (!file.loaded.empty()) {
          log(LogLevel::kInfo, fmt::format("loaded {} from {}", file.loaded, file.name));
        }
      }
      changed();
      turn->done(verdict(*loaded));
    });
  };
  order(std::move(act), std::move(answer));
}

Result<unsigned> PccDevice::slot_to_unload(const std::string& name) const {
  const PccAlgorithmInfo* info = find(name);
  if (!info) return errorf(ENOENT, "there is no algorithm '{}'", name);
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
  if (!info) return errorf(ENOENT, "there is no algorithm '{}'", name);
  if (applied_ != info->slot) return errorf(EINVAL, "{} is not applied", name);
  for (const auto& change : changes) {
    const auto& all = info->parameters;
    bool known = std::any_of(all.begin(), all.end(),
                             [&](const auto& one) { return one.first == change.first; });
    if (!known) return errorf(ENOENT, "{} has no parameter '{}'", name, change.first);
  }
  return info->slot;
}

void PccDevice::update(const std::string& algorithm, PccBackend::Assignments changes,
                       Answer<void> answer) {
  auto act = [this, algorithm, changes = std::move(changes)](TurnPtr turn) {
    Result<unsigned> slot = slot_to_update(algorithm, changes);
    if (!slot) return turn->done(slot.error());
    backend_->update(*slot, changes, [this, turn](Result<PccAlgorithmInfo> updated) {
      if (turn->over()) return;
      if (!updated) return turn->done(updated.error());
      for (PccAlgorithmInfo& one : algorithms_) {
        if (one.slot == updated->slot) one = *updated;
      }
      turn->done({});
    });
  };
  order(std::move(act), std::move(answer));
}

void PccDevice::echo(const std::string& message, Answer<std::string> answer) {
  auto said = std::make_shared<std::string>();
  auto act = [this, message, said](TurnPtr turn) {
    backend_->echo(message, [turn, said](Result<std::string> result) {
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

void PccDevice::pcc_log(LogLevel level, std::string_view line) {
  parts_.log(level, fmt::format("{}: PCC: {}", device_.name(), line));
}

// Orders under way are told by the backend itself.
void PccDevice::pcc_died(const std::string& why) {
  bool was_active = std::exchange(active_, false);
  last_error_ = why;
  log(LogLevel::kErr, fmt::format("{}: {}", was_active ? "ended" : "failed", why));
  forget();
  if (was_active) give_back([](Result<void>) {});
}

}  // namespace rocefs
