#include "pcc/card/virtual_backend.h"

#include <cerrno>
#include <utility>

#include "pcc/algorithms/built_ins.h"
#include "pcc/card/algorithm_info.h"
#include "pcc/card/log_level.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

Result<void> result_of(mango_status_e status) {
  if (status == MANGO_STATUS_OK) return {};
  int code = status == MANGO_STATUS_NOT_FOUND ? ENOENT : EINVAL;
  return Error{code, mango_status_str(status)};
}

}  // namespace

VirtualBackend::VirtualBackend(Engine& engine, Device& device, PollLoop& loop,
                               CardBackend::Options card, PccBackend::Listener& listener)
    : engine_(engine),
      listener_(listener),
      card_(loop, card, *this),
      seed_(card.seed),
      controller_(make_controller()),
      event_(event_of<&VirtualBackend::on_time>(this)) {
  device.registers().on_change([this] { look_soon(); });
  device.registers().on_event([this] { look_for_events(); });
}

std::unique_ptr<PccController> VirtualBackend::make_controller() {
  auto log = [this](mango_log_level_e level, std::string_view text) {
    engine_.tell_control([this, level = log_level_of(level), text = std::string(text)] {
      listener_.pcc_log(level, text);
    });
  };
  auto controller = std::make_unique<PccController>(seed_, log);
  add_built_ins(*controller);
  return controller;
}

VirtualBackend::~VirtualBackend() {
  if (running_ == Runner::kEngine) controller_->end();
}

VirtualBackend::Runner VirtualBackend::runner_of(unsigned slot) {
  return slot < kBuiltIns ? Runner::kEngine : Runner::kCard;
}

void VirtualBackend::pcc_log(LogLevel level, std::string_view line) {
  listener_.pcc_log(level, line);
}

// Plugins end with the process, and the listener resets the applied algorithm. The engine stands
// until the core has the windows back: the death happens at the time of the call, whenever it is
// noticed.
void VirtualBackend::pcc_died(const std::string& why, bool named) {
  begin_anew([this, why, named, pause = std::exchange(last_round_, {})](Result<void>) {
    listener_.pcc_died(why, named);
    Task release = [pause] {};
    (void)engine_.post(release);
  });
}

// The process has built-in algorithms of its own, which are not in use: their values come from the
// engine.
void VirtualBackend::load(const std::string& directory, bool force, Answer<PccLoaded> answer) {
  card_.load(directory, force,
             [this, answer = std::move(answer)](Result<PccLoaded> loaded) mutable {
               if (!loaded) return answer(std::move(loaded));
               engine_.call<PccLoaded>(
                   [this, loaded = std::move(*loaded)]() mutable -> Result<PccLoaded> {
                     for (PccAlgorithmInfo& one : loaded.algorithms) {
                       if (one.slot < kBuiltIns) one = describe(*controller_, one.slot);
                     }
                     look_soon();
                     return std::move(loaded);
                   },
                   std::move(answer));
             });
}

void VirtualBackend::unload(unsigned slot, Answer<void> answer) {
  card_.unload(slot, std::move(answer));
}

void VirtualBackend::apply(unsigned slot, std::optional<uint32_t> qpn, Answer<void> answer) {
  Runner runner = runner_of(slot);
  if (qpn && runner != applied_) {
    return answer(Error{EOPNOTSUPP,
                        "under the virtual clock built-in algorithms and plugins do not run beside "
                        "each other"});
  }
  auto then = [this, runner, life = life_,
               answer = std::move(answer)](Result<void> applied) mutable {
    if (!applied) return answer(std::move(applied));
    if (life != life_) return;
    applied_ = runner;
    if (runs_ == Runner::kNone) return answer({});
    if (runs_ == runner) return look_then(std::move(answer));
    stop([this, run = run_, answer = std::move(answer)](Result<void> stopped) mutable {
      if (!stopped) return answer(std::move(stopped));
      start(run, std::move(answer));
    });
  };
  if (runner == Runner::kCard) return card_.apply(slot, qpn, std::move(then));
  engine_.call<void>(
      [this, slot, qpn]() -> Result<void> {
        if (!qpn) return result_of(controller_->apply(slot));
        return result_of(controller_->apply(slot, std::span(&*qpn, 1)));
      },
      std::move(then));
}

void VirtualBackend::start(const Run& run, Answer<void> answer) {
  Runner runner = applied_ == Runner::kCard ? Runner::kCard : Runner::kEngine;
  auto then = [this, run, runner, life = life_,
               answer = std::move(answer)](Result<void> started) mutable {
    if (life != life_) return;
    if (started) {
      run_ = run;
      runs_ = runner;
    }
    answer(std::move(started));
  };
  if (runner == Runner::kEngine) {
    engine_.call<void>(
        [this, run]() -> Result<void> {
          controller_->set_interval(run.interval_us * kMicrosecond);
          signals_ = run.signals;
          control_ = run.control;
          return result_of(controller_->begin(signals_->at<rocefs_signals_page>(0),
                                              control_->at<rocefs_control_page>(0), 1));
        },
        [this, life = life_, interval_us = run.interval_us,
         then = std::move(then)](Result<void> begun) mutable {
          if (!begun || life != life_) return then(std::move(begun));
          run_by_core(Runner::kEngine, interval_us, std::move(then));
        });
    return;
  }
  Run lockstep = run;
  lockstep.pollers = 0;
  card_.start(lockstep, [this, life = life_, interval_us = run.interval_us,
                         then = std::move(then)](Result<void> started) mutable {
    if (!started || life != life_) return then(std::move(started));
    run_by_core(Runner::kCard, interval_us, std::move(then));
  });
}

void VirtualBackend::stop(Answer<void> answer) {
  bool card = std::exchange(runs_, Runner::kNone) == Runner::kCard;
  run_ = {};
  run_by_core(Runner::kNone, 0,
              [this, card, answer = std::move(answer)](Result<void> ended) mutable {
                if (!ended || !card) return answer(std::move(ended));
                card_.stop(std::move(answer));
              });
}

// Switches the calls at due times to `runner`.
void VirtualBackend::run_by_core(Runner runner, unsigned interval_us, Answer<void> answer) {
  engine_.call<void>(
      [this, runner, interval_us]() -> Result<void> {
        interval_ = interval_us * kMicrosecond;
        if (running_ == Runner::kEngine && runner != Runner::kEngine) {
          controller_->end();
          control_.reset();
          signals_.reset();
        }
        running_ = runner;
        look_soon();
        return {};
      },
      std::move(answer));
}

void VirtualBackend::set_interval(unsigned interval_us, Answer<void> answer) {
  run_.interval_us = interval_us;
  engine_.call<void>(
      [this, interval_us]() -> Result<void> {
        interval_ = interval_us * kMicrosecond;
        controller_->set_interval(interval_);
        look_soon();
        return {};
      },
      [this, interval_us, answer = std::move(answer)](Result<void> set) mutable {
        if (!set || card_.pid() == 0) return answer(std::move(set));
        card_.set_interval(interval_us, std::move(answer));
      });
}

void VirtualBackend::update(unsigned slot, const Assignments& changes,
                            Answer<PccAlgorithmInfo> answer) {
  if (runner_of(slot) == Runner::kCard) return card_.update(slot, changes, std::move(answer));
  engine_.call<PccAlgorithmInfo>(
      [this, slot, changes]() -> Result<PccAlgorithmInfo> {
        std::vector<PccController::Change> wanted;
        for (const auto& [name, value] : changes) wanted.push_back({name, value});
        if (Result<void> updated = controller_->update(slot, wanted); !updated) {
          return updated.error();
        }
        return describe(*controller_, slot);
      },
      std::move(answer));
}

void VirtualBackend::read(unsigned slot, Answer<PccAlgorithmInfo> answer) {
  if (runner_of(slot) == Runner::kCard) return card_.read(slot, std::move(answer));
  engine_.call<PccAlgorithmInfo>(
      [this, slot]() -> Result<PccAlgorithmInfo> { return describe(*controller_, slot); },
      std::move(answer));
}

void VirtualBackend::forget(Answer<void> answer) {
  last_round_.reset();
  card_.forget([](Result<void>) {});
  begin_anew(std::move(answer));
}

void VirtualBackend::begin_anew(Answer<void> answer) {
  ++life_;
  applied_ = runs_ = Runner::kNone;
  run_ = {};
  engine_.call<void>(
      [this]() -> Result<void> {
        if (running_ == Runner::kEngine) controller_->end();
        running_ = Runner::kNone;
        controller_ = make_controller();
        control_.reset();
        signals_.reset();
        look_soon();
        return {};
      },
      std::move(answer));
}

void VirtualBackend::dump(uint32_t qpn, Answer<std::string> answer) {
  if (runs_ != Runner::kEngine) return card_.dump(qpn, std::move(answer));
  engine_.call<std::string>([this, qpn] { return controller_->dump(qpn); }, std::move(answer));
}

void VirtualBackend::echo(const std::string& message, Answer<std::string> answer) {
  card_.echo(message, std::move(answer));
}

// Reschedules: queue pairs that slept have another algorithm.
void VirtualBackend::look_then(Answer<void> answer) {
  engine_.call<void>(
      [this]() -> Result<void> {
        look_soon();
        return {};
      },
      std::move(answer));
}

// Reschedules: a queue pair came or went, or the runner changed.
void VirtualBackend::look_soon() {
  if (running_ == Runner::kNone) return engine_.scheduler().cancel(event_);
  schedule(engine_.scheduler().now());
}

// An interval passes between two looks at events, as between two calls for a queue pair.
void VirtualBackend::look_for_events() {
  if (running_ == Runner::kNone) return;
  TimeNs at = std::max(engine_.scheduler().now(), looked_at_ + interval_);
  if (event_.scheduled() && next_look_ <= at) return;
  schedule(at);
}

void VirtualBackend::schedule(TimeNs next) {
  if (next == kNever) return;
  next_look_ = next;
  engine_.scheduler().at(event_, next);
}

void VirtualBackend::on_time(TimeNs now) {
  looked_at_ = now;
  if (running_ == Runner::kEngine) return schedule(controller_->poll(0, now));
  engine_.tell_control([this, now, pause = engine_.pause()] { round(now, pause); });
}

// Pauses the engine until the answer has been given.
void VirtualBackend::round(TimeNs now, const Engine::Pause& pause) {
  if (runs_ != Runner::kCard) return;  // the run has ended meanwhile
  card_.round(now, [this, pause](Result<TimeNs> next) {
    if (!next) {
      // Where the process has died, pcc_died() follows.
      if (card_.pid() == 0 && runs_ == Runner::kCard) last_round_ = pause;
      return;
    }
    Task task = [this, next = *next] {
      if (running_ == Runner::kCard) schedule(next);
    };
    (void)engine_.post(task);
  });
}

}  // namespace rocefs
