#include "tools/rocefs/sim/simulation.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/base/assignment.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/tree/file_walk.h"
#include "core/tree/knob_file.h"
#include "core/tree/set_file.h"
#include "core/tree/trigger.h"
#include "tools/rocefs/command/limits.h"
#include "tools/rocefs/sim/thread_rules.h"

namespace rocefs {
namespace {

// Longest step of time when nothing is stored or sampled: a signal waits for its end, and a large
// network takes long for a millisecond.
TimeNs longest_step(size_t devices) {
  constexpr size_t kFew = 32;
  TimeNs step = kMillisecond * kFew / std::max(devices, kFew);
  return std::max(step, 10 * kMicrosecond);
}

// Steps in one when no flow is left and only the end of the run is awaited: a signal waits for at
// most 0.1 s of time in which little happens.
constexpr TimeNs kIdleSteps = 100;

Error not_writable(std::string_view path) {
  return errorf(ENOENT, "{}: not a writable file", path);
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Caller own_caller() {
  return {::geteuid(), ::getegid(), ::getpid()};
}

}  // namespace

std::string Simulation::below_debug(std::string_view path) {
  return fmt::format("{}/{}", kDebugDirectory, path);
}

std::variant<std::unique_ptr<Simulation>, BuildFailure> Simulation::create(
    const Config& config, const Scenario::Variant* variant, uint64_t seed, size_t threads) {
  std::unique_ptr<Simulation> simulation(new Simulation(config));
  if (std::optional<Failure> failure = simulation->build(variant, seed, threads)) {
    return BuildFailure{*failure, simulation->refused_by_variant_,
                        std::move(simulation->result_.log)};
  }
  return simulation;
}

Failure Simulation::failed(int line, const std::string& why) const {
  return {2, fmt::format("{}:{}: {}", config_.name, line, why)};
}

template <class Add>
std::optional<Failure> Simulation::add_all(const std::vector<Scenario::Line>& lines, Add add) {
  for (const Scenario::Line& line : lines) {
    Result<void> added = (this->*add)(line);
    if (!added) return failed(line.line, fmt::format("{}: {}", line.key, added.error().reason));
  }
  return std::nullopt;
}

std::optional<Failure> Simulation::build(const Scenario::Variant* variant, uint64_t seed,
                                         size_t threads) {
  if (variant) result_.variant = variant->name;
  const size_t devices = config_.topology ? config_.topology->devices.size() : 2;
  if (Result<void> enough = check_open_files(devices, "-n"); !enough) {
    return Failure{1, enough.error().reason};
  }
  Instance::Options wanted{{ClockMode::kVirtual, 1, 0, nullptr}, seed, ::geteuid(), ::getegid()};
  if (threads > 0) {
    wanted.engine.regions = kMostRegions;
    wanted.engine.threads = threads;
  }
  auto instance = Instance::create(config_, wanted);
  if (!instance) return Failure{1, instance.error().reason};
  instance_ = std::move(*instance);
  instance_->dmesg().set_listener(
      [this](LogLevel level, std::string_view line) { take_log(level, line); });
  instance_->add_files(nullptr);
  if (std::optional<Failure> failure = apply_knobs(variant)) return failure;
  instance_->keep_as_defaults();
  instance_->pcc().begin_modes();
  const Scenario& scenario = config_.scenario;
  if (std::optional<Failure> failure = check_regions()) return failure;
  ideal_.emplace(instance_->fabric());
  capacities_.emplace(instance_->fabric());
  if (auto failure = add_loads(variant, seed)) return failure;
  if (auto failure = add_all(scenario.faults, &Simulation::add_fault)) return failure;
  if (auto failure = add_all(scenario.flows, &Simulation::add_flow)) return failure;
  if (auto failure = add_all(scenario.stores, &Simulation::add_store)) return failure;
  if (auto failure = add_all(scenario.samples, &Simulation::add_sample)) return failure;
  std::stable_sort(stores_.begin(), stores_.end(),
                   [](const Store& a, const Store& b) { return a.at < b.at; });
  for (size_t place = 0; place < result_.flows.size(); ++place) {
    result_.flows[place].state = "not started";
    to_come_.push_back(place);
  }
  std::stable_sort(to_come_.begin(), to_come_.end(), [this](size_t a, size_t b) {
    return result_.flows[a].start > result_.flows[b].start;
  });
  if (result_.flows.empty() && loads_->empty() && !scenario.until) {
    return Failure{2,
                   fmt::format("{}: [flows], [load NAME] or [sim] until= is wanted", config_.name)};
  }
  return std::nullopt;
}

// With threads: whether all that is on can run in regions.
std::optional<Failure> Simulation::check_regions() const {
  const Fabric& fabric = instance_->fabric();
  if (!fabric.in_regions()) return std::nullopt;
  if (Result<void> can = check_threads(fabric); !can) {
    return Failure{2, fmt::format("{}: {}", config_.name, can.error().reason)};
  }
  if (config_.scenario.capture) {
    return Failure{2, fmt::format("{}: capture=yes: not with --threads", config_.name)};
  }
  if (config_.scenario.faults.empty()) return std::nullopt;
  const Scenario::Line& fault = config_.scenario.faults.front();
  return failed(fault.line, fault.key +
                                ": faults find their packets in the order of all: not with "
                                "--threads");
}

std::optional<Failure> Simulation::add_loads(const Scenario::Variant* variant, uint64_t seed) {
  loads_.emplace(config_, instance_->fabric(), *ideal_);
  instance_->on_reset([this] {
    loads_->remove_running();
    sampler_.counters_reset();
    capacities_->restart(instance_->engine().scheduler().now());
  });
  std::optional<LoadRun::Refusal> refusal = loads_->build(variant, seed);
  return refusal ? std::optional(failed(refusal->line, refusal->why)) : std::nullopt;
}

// Knobs of [knobs] and of the variant, whose values come later, are stored together.
std::optional<Failure> Simulation::apply_knobs(const Scenario::Variant* variant) {
  auto settings_of = [this](const Scenario::Variant& one) {
    std::vector<KnobSetting> settings = config_.knobs;
    settings.insert(settings.end(), one.knobs.begin(), one.knobs.end());
    return settings;
  };
  for (const Scenario::Variant& one : config_.scenario.variants) {
    if (auto refusal = instance_->check(settings_of(one))) return refusal;
  }
  const std::vector<KnobSetting> settings = variant ? settings_of(*variant) : config_.knobs;
  std::optional<SettingRefusal> refusal = instance_->apply(settings);
  if (!refusal) return std::nullopt;
  refused_by_variant_ =
      refusal->setting >= settings.data() + config_.knobs.size();  // they are in one array
  return refusal;
}

void Simulation::take_log(LogLevel level, std::string_view line) {
  result_.log.emplace_back(line);
  if (view_) view_->note_log(line);
  if (result_.log.size() > RunResult::kMaxLog) result_.log.pop_front();
  if (level > LogLevel::kWarning) return;
  if (level == LogLevel::kErr && error_.empty()) error_ = line;
  if (result_.warnings.size() < RunResult::kMaxWarnings) {
    result_.warnings.emplace_back(line);
  } else {
    ++result_.more_warnings;
  }
}

Result<void> Simulation::add_fault(const Scenario::Line& line) {
  std::string text = fmt::format("{} {}", line.key, line.value);
  Result<InjectSpec> spec = parse_inject(text);
  if (!spec) return spec.error();
  if (!instance_->fabric().link(spec->link)) return errorf(EINVAL, "no link {}", spec->link);
  stores_.push_back({0, below_debug("inject/add"), text, line.line});
  result_.faults.push_back({line.key, line.value, line.line, 0});
  return {};
}

// Adds a line of [at]. Knobs are stored together, triggers one after another.
Result<void> Simulation::add_store(const Scenario::Line& line) {
  Result<TimeNs> at = parse_duration(line.key);
  if (!at) return at.error();
  Result<std::vector<Assignment>> assignments = parse_assignments(line.value);
  if (!assignments) return assignments.error();
  const auto is_knob = [&](const Assignment& one) {
    return is_pattern(one.path) || find_knob(instance_->tree(), one.path);
  };
  if (std::none_of(assignments->begin(), assignments->end(), is_knob)) {
    for (const Assignment& one : *assignments) {
      if (!writable(one.path) && !Sampler::may_come_later(one.path)) return not_writable(one.path);
      stores_.push_back({*at, one.path, one.value, line.line, true});
    }
    return {};
  }
  Result<std::vector<KnobChange>> changes = knob_changes(instance_->tree(), *assignments);
  if (!changes) return changes.error();
  stores_.push_back({*at, {}, format_assignments(*assignments), line.line, true});
  return {};
}

Result<void> Simulation::add_sample(const Scenario::Line& line) {
  return sampler_.add(instance_->tree(), line,
                      [this](const std::string& path) { return text_of(path); });
}

Result<void> Simulation::wait(const std::function<void(Answer<void>)>& begin) {
  std::optional<Result<void>> result;
  begin([&](Result<void> answer) {
    result = std::move(answer);
    instance_->loop().stop();
  });
  instance_->loop().run();
  return *result;
}

std::shared_ptr<File> Simulation::writable(const std::string& path) {
  Tree::Node* node = instance_->tree().follow(path);
  return node && node->file && node->file->writable() ? node->file : nullptr;
}

Result<void> Simulation::store(const std::string& path, const std::string& value) {
  const std::shared_ptr<File> file = writable(path);
  if (!file) return not_writable(path);
  return wait([&](Answer<void> answer) {
    file->store(value, std::make_shared<Operation>(own_caller()), std::move(answer));
  });
}

// `value`: knobs as in a store to `set`, but any number of them.
Result<void> Simulation::store_knobs(const std::string& value) {
  Result<std::vector<Assignment>> assignments = parse_assignments(value);
  if (!assignments) return assignments.error();
  return wait([&](Answer<void> answer) {
    store_together(instance_->tree(), instance_->engine(), *assignments, std::nullopt,
                   std::move(answer));
  });
}

// With `until_idle`, at most so long: until no flow, work request or packet is left.
Result<void> Simulation::advance(TimeNs duration, bool until_idle) {
  Result<void> passed = wait([&](Answer<void> answer) {
    auto shared = std::make_shared<Answer<void>>(std::move(answer));
    Task task = [this, duration, until_idle, shared] {
      auto told = [shared](Result<void> result) { (*shared)(std::move(result)); };
      if (!until_idle) return instance_->engine().advance(duration, std::move(told));
      instance_->engine().advance_until_idle(duration, std::move(told));
    };
    if (!instance_->engine().post(task))
      (*shared)(Error{EAGAIN, "too many commands are waiting for the engine"});
  });
  const bool timed_out = until_idle && !passed && passed.error().code == ETIMEDOUT;
  return timed_out ? Result<void>() : passed;
}

// Runs `work` on the core, and waits for it.
void Simulation::on_core(UniqueFunction<void()> work) {
  (void)wait([&](Answer<void> answer) {
    instance_->engine().call<void>(
        [&work]() -> Result<void> {
          work();
          return {};
        },
        std::move(answer));
  });
}

std::optional<std::string> Simulation::text_of(const std::string& path) {
  Tree::Node* node = instance_->tree().follow(path);
  if (!node || !node->file) return std::nullopt;
  Result<std::string> text = Error{ENOENT, "no text"};
  auto* attribute = dynamic_cast<Attribute*>(node->file.get());
  auto* stream = dynamic_cast<Stream*>(node->file.get());
  if (!stream && !(attribute && attribute->readable())) return std::nullopt;
  (void)wait([&](Answer<void> told) {
    auto take = [&text, told = std::move(told)](Result<std::string> content) mutable {
      text = std::move(content);
      told({});
    };
    if (attribute) return attribute->show_present(std::move(take));
    stream->content(std::move(take));
  });
  if (!text) return std::nullopt;
  return *text;
}

std::optional<Failure> Simulation::store_due(TimeNs now, size_t& next) {
  if (next < stores_.size() && stores_[next].at <= now) finish_regions();
  for (; next < stores_.size() && stores_[next].at <= now; ++next) {
    const Store& due = stores_[next];
    const bool knobs = due.path.empty();
    if (due.of_at && !knobs) look_at_flows();
    Result<void> stored = knobs ? store_knobs(due.value) : store(due.path, due.value);
    if (!stored) return failed(due.line, stored.error().reason);
    const Fabric& fabric = instance_->fabric();
    if (due.of_at && fabric.in_regions()) stored = check_threads(fabric);
    if (!stored) return failed(due.line, stored.error().reason);
    if (!view_) continue;
    view_->note_store(
        fmt::format("@{} {}", now, knobs ? due.value : format_assignment(due.path, due.value)));
  }
  return std::nullopt;
}

// Looks for what ends a run early. An error in dmesg has no writer that it could be reported to:
// the death of a plugin, a capture that cannot be written. What follows it is another run than
// wanted.
std::optional<Failure> Simulation::cut_off(TimeNs now) {
  std::string of = config_.name + ": ";
  if (!result_.variant.empty()) of += fmt::format("the run of {}: ", result_.variant);
  if (!error_.empty()) return Failure{1, of + error_};
  if (std::string why = options_.cut_off ? options_.cut_off() : ""; !why.empty()) {
    result_.end_kind = RunEnd::kSignal;
    return Failure{1, fmt::format("{}{}: {}", of, why, left_over(now))};
  }
  if (config_.scenario.until || now < config_.scenario.limit) return std::nullopt;
  result_.end_kind = RunEnd::kLimit;
  return Failure{1, of + left_over(now)};
}

void Simulation::note_not_due(size_t next) {
  const std::string name = config_.name.substr(config_.name.rfind('/') + 1);
  for (; next < stores_.size(); ++next) {
    const Store& store = stores_[next];
    if (!store.of_at) continue;
    result_.not_due.push_back(fmt::format("{}:{}: {} has not come due: the run ended at {}", name,
                                          store.line, format_duration(store.at),
                                          format_duration(result_.end)));
  }
}

void Simulation::take_sample(TimeNs now) {
  result_.samples.push_back(
      sampler_.take(now, [this](const std::string& path) { return text_of(path); }));
}

// The engine stands still between two steps: stores come at one place in the run, and the values of
// a sample belong to one moment.
std::optional<Failure> Simulation::run_steps() {
  const Scenario& scenario = config_.scenario;
  const TimeNs step = longest_step(instance_->fabric().devices().size());
  size_t next_store = 0;
  bool rests = false;  // nothing is left, and yet the run is not over
  for (TimeNs now = 0;;) {
    result_.end = now;
    if (std::optional<Failure> failure = store_due(now, next_store)) return failure;
    if (sampler_.due(now) == now) take_sample(now);
    if (view_ && sampler_.next_interval(now) == now) view_->look(now);
    note_started(now);
    note_ended();
    uint64_t ended = flows_known() - to_come_.size() - running_.size() - loads_->running();
    if (options_.progress) {
      uint64_t expected = result_.flows.size() + loads_->expected(now);
      options_.progress({now, ended, flows_known(), expected});
    }
    const bool idle = ended == flows_known() && loads_->over();
    bool over = scenario.until ? now >= *scenario.until : idle;
    if (over && error_.empty()) {
      if (sampler_.due(now) != kNever && sampler_.due(now) != now) take_sample(now);
      note_not_due(next_store);
      result_.end_kind = scenario.until ? RunEnd::kUntil : RunEnd::kFlowsDone;
      return std::nullopt;
    }
    if (std::optional<Failure> failure = cut_off(now)) return failure;
    TimeNs end = scenario.until.value_or(scenario.limit);
    TimeNs to = std::min(end, now + (idle ? kIdleSteps * step : step));
    if (next_store < stores_.size()) to = std::min(to, stores_[next_store].at);
    to = std::min(to, sampler_.due(now + 1));
    const bool ends = !scenario.until && to_come_.empty() && !idle && !rests;
    Result<TimeNs> passed = pass(now, to, ends);
    if (!passed) return Failure{1, passed.error().reason};
    now = *passed;
    rests = now < to;
  }
}

// Lets time pass, with `until_idle` only while there is work, and returns the time. Looks for the
// recording come between, and change nothing.
Result<TimeNs> Simulation::pass(TimeNs from, TimeNs to, bool until_idle) {
  for (TimeNs now = from; now < to;) {
    const TimeNs next = view_ ? std::min(to, sampler_.next_interval(now + 1)) : to;
    if (Result<void> passed = advance(next - now, until_idle); !passed) return passed.error();
    now = instance_->engine().now();
    if (now < next) return now;
    if (next < to) view_->look(next);
  }
  return to;
}

// A recording that cannot be written leaves the run as it is.
void Simulation::begin_view() {
  auto begun = ViewRecording::begin(options_.view, options_.view_title, instance_->tree(),
                                    [this](const auto& begin) { return wait(begin); });
  if (!begun) {
    result_.recorded = begun.error();
    return;
  }
  view_ = std::move(*begun);
  for (const std::string& line : result_.log) view_->note_log(line);
}

RunResult Simulation::run(const RunOptions& options) {
  options_ = options;
  const std::string& capture = options_.capture;
  const double before = cpu_seconds();
  const TimeNs began = monotonic_ns();
  instance_->engine().start();
  on_core([this] {
    Fabric& fabric = instance_->fabric();
    for (const auto& one : fabric.switches()) {
      if (!options_.queues) break;
      FabricResources& part = fabric.part_of(one->name());
      one->measure_queues(queue_times_[&part], part.scheduler().now());
    }
    loads_->begin(*this);
  });
  result_.end_kind = RunEnd::kFailed;
  if (!capture.empty()) keep_failure(store(below_debug("pcap"), capture));
  if (!options_.view.empty()) begin_view();
  if (!result_.failure) result_.failure = run_steps();
  if (view_) {
    view_->look(result_.end);
    result_.recorded = view_->finish();
    if (result_.recorded) result_.recording = options_.view;
    view_.reset();
  }
  if (!capture.empty()) keep_failure(store(below_debug("pcap"), "off"));
  result_.cpu_seconds = cpu_seconds() - before;
  result_.wall_seconds = static_cast<double>(monotonic_ns() - began) * 1e-9;
  if (const Regions* regions = instance_->engine().regions()) result_.regions = regions->count();
  collect();
  return std::move(result_);
}

void Simulation::keep_failure(const Result<void>& result) {
  if (result || result_.failure) return;
  result_.end_kind = RunEnd::kFailed;
  result_.failure = Failure{1, result.error().reason};
}

// Flows that have ended in the window that runs are told of.
void Simulation::finish_regions() {
  Regions* regions = instance_->engine().regions();
  if (regions) on_core([regions] { regions->finish(); });
}

void Simulation::collect() {
  finish_regions();
  on_core([this] { instance_->traffic().account(); });
  for (const std::vector<size_t>& places : {running_, to_come_}) {
    for (size_t place : places) {
      take_result(result_.flows[place]);
      flow_ended(result_.flows[place].record());
    }
  }
  on_core([this] { loads_->cut_off(); });
  result_.loads = loads_->totals();
  for (FaultResult& fault : result_.faults) {
    std::string text = text_of(below_debug("inject/" + fault.name + "/fired")).value_or("0");
    fault.fired = std::strtoull(text.c_str(), nullptr, 10);
  }
  instance_->stop_engine();
  const TimeNs now = instance_->fabric().scheduler().now();
  result_.fabric = FabricTotals::of(instance_->fabric(), instance_->topology(), *capacities_, now);
  if (options_.queues) result_.queues = AllQueues::of(instance_->fabric(), now);
  result_.events = instance_->engine().events_run();
  result_.trace_hash = instance_->fabric().trace_hash();
}

}  // namespace rocefs
