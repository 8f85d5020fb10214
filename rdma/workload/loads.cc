#include "rdma/workload/loads.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/text.h"
#include "core/tree/function_file.h"
#include "core/tree/trigger.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

constexpr TriggerRow kStart{
    "start",
    "NAME pattern=poisson|incast|permutation|all-to-all|ring-allreduce|tree-allreduce [KEY=VALUE "
    "…]",
    "starts many flows by one rule and adds a directory NAME for it; the keys are those of a "
    "[load] "
    "section, rocefs.ini(5), but for file=, and cdf= takes websearch, fbhadoop or alistorage; "
    "start= and until= count from now"};
constexpr TriggerRow kStop{"stop", "1", "stops the load, or removes one that has ended"};

}  // namespace

// A load on the core.
class Loads::Run final : public WorkloadListener {
 public:
  Run(Loads& owner, uint64_t id, Load load, WorkloadLimits limits) : owner_(owner), id_(id) {
    std::vector<Load> loads;
    loads.push_back(std::move(load));
    workload_ =
        std::make_unique<Workload>(owner.parts_.fabric, std::move(loads), *this, std::move(limits));
    ++outstanding().flows;
  }
  ~Run() override { end(); }

  void begin() { workload_->begin(); }
  void end() {
    if (!workload_) return;
    progress_.started = workload_->started();
    workload_.reset();
    settle();
  }
  LoadProgress progress() const {
    LoadProgress progress = progress_;
    if (workload_) progress.started = workload_->started();
    return progress;
  }

 private:
  Outstanding& outstanding() { return owner_.parts_.engine.outstanding(); }
  void load_flow_ended(const LoadFlow& flow) override { progress_.add(flow); }
  void load_round_ended(const Load&, const RoundTimes& round) override { progress_.add(round); }
  // The caller is a flow of the workload: that is freed later.
  void loads_over() override {
    owner_.over_on_core(id_);
    settle();
  }
  // Work is outstanding between two flows, too.
  void settle() {
    if (std::exchange(counted_, false)) --outstanding().flows;
  }

  Loads& owner_;
  const uint64_t id_;
  std::unique_ptr<Workload> workload_;  // null once it has ended
  bool counted_ = true;                 // among the flows that are outstanding
  LoadProgress progress_;
};

class Loads::ResultFile final : public Stream {
 public:
  ResultFile(Loads& loads, uint64_t id) : loads_(loads), id_(id) {}
  FileDoc doc() const override {
    return {"value",
            {},
            {},
            "what the load has done: `key value` lines, with percentiles of the flow completion "
            "times of flows that are done, which are right to within 0.8 %"};
  }
  // Copied by the core, put into words here.
  void content(Answer<std::string> answer) override {
    loads_.parts_.engine.call<LoadProgress>(
        [this_loads = &loads_, id = id_]() -> Result<LoadProgress> {
          auto run = this_loads->runs_.find(id);
          return run == this_loads->runs_.end() ? LoadProgress() : run->second->progress();
        },
        [answer = std::move(answer)](Result<LoadProgress> progress) mutable {
          if (!progress) return answer(progress.error());
          answer(progress->text());
        });
  }

 private:
  Loads& loads_;
  const uint64_t id_;
};

Loads::Loads(Parts parts) : parts_(std::move(parts)) {
  parts_.tree.add_directory(parts_.directory, true);
  add_trigger(parts_.tree, parts_.directory, kStart, parts_.engine,
              [this](std::string_view text, const OperationPtr& operation, Answer<void> answer) {
                start(text, operation, std::move(answer));
              });
}

Loads::~Loads() = default;

Loads::Entry* Loads::find(std::string_view name, uint64_t id) {
  auto found = entries_.find(name);
  return found == entries_.end() || found->second.id != id ? nullptr : &found->second;
}

void Loads::start(std::string_view line, const OperationPtr& operation, Answer<void> answer) {
  Result<LoadSpec> spec = parse_load(line);
  if (!spec) return answer(spec.error());
  if (parts_.fabric.in_regions()) {
    return answer(Error{EOPNOTSUPP, "a simulation with --threads has its loads in the file"});
  }
  std::string name = spec->name;
  if (entries_.contains(name)) return answer(errorf(EEXIST, "there is a load {} already", name));
  if (entries_.size() >= kMaxLoads) {
    return answer(
        errorf(EMFILE, "there are {} loads: `stop` removes one that has ended", kMaxLoads));
  }
  const uint64_t id = ++last_id_;
  entries_[name] = {id};
  const pid_t pid = operation->caller().pid;
  parts_.engine.call<void>(
      [this, id, spec = std::move(*spec), owner = QpOwner{pid, comm_of(pid)}]() mutable {
        return begin_on_core(id, std::move(spec), std::move(owner));
      },
      [this, name, id, answer = std::move(answer)](Result<void> begun) mutable {
        if (Entry* entry = find(name, id)) {
          if (begun) {
            add_directory(name, *entry);
          } else {
            entries_.erase(name);
          }
        }
        answer(std::move(begun));
      });
}

// Ports with a cable, and the rates that those have now.
std::vector<LoadHost> Loads::hosts() const {
  std::vector<LoadHost> hosts;
  for (const auto& device : parts_.fabric.devices()) {
    for (size_t number = 1; number <= device->port_count(); ++number) {
      uint64_t rate = device->port(number).line_bps();
      if (rate == 0) continue;
      hosts.push_back({PortName{device->name(), static_cast<unsigned>(number)}.text(), rate});
    }
  }
  return hosts;
}

namespace {

// An all-to-all may start more flows at once than may run.
Result<void> check_start(const LoadSpec& spec, size_t all) {
  if (spec.pattern != LoadPattern::kAllToAll) return {};
  const uint64_t hosts = spec.hosts.empty() ? all : spec.hosts.size();
  if (hosts < 2) return {};  // refused with the rest
  const uint64_t at_once = hosts * std::min<uint64_t>(spec.parallel, hosts - 1);
  if (at_once <= Loads::kMaxRunningFlows) return {};
  return errorf(EINVAL, "parallel={}: {} flows would run at once, {} may", spec.parallel, at_once,
                Loads::kMaxRunningFlows);
}

}  // namespace

Result<void> Loads::begin_on_core(uint64_t id, LoadSpec spec, QpOwner owner) {
  const TimeNs now = parts_.fabric.scheduler().now();
  spec.start = later(now, spec.start);
  if (spec.until) spec.until = later(now, *spec.until);
  const std::vector<LoadHost> all = hosts();
  if (Result<void> fits = check_start(spec, all.size()); !fits) return fits.error();
  Result<Load> load = make_load(spec, all, parts_.fabric.seed(), {}, std::nullopt);
  if (!load) return load.error();
  auto run = std::make_unique<Run>(*this, id, std::move(*load),
                                   WorkloadLimits{std::move(owner), kMaxRunningFlows});
  Run& begun = *run;
  runs_[id] = std::move(run);
  begun.begin();
  return {};
}

void Loads::over_on_core(uint64_t id) {
  parts_.engine.tell_control([this, id] {
    for (const auto& [name, entry] : entries_) {
      if (entry.id == id) {
        become(name, id, State::kDone);
        break;
      }
    }
  });
}

void Loads::end_on_core(uint64_t id) {
  if (auto run = runs_.find(id); run != runs_.end()) run->second->end();
}

void Loads::become(const std::string& name, uint64_t id, State state) {
  Entry* entry = find(name, id);
  if (!entry || entry->state != State::kRunning) return;
  entry->state = state;
  if (entry->state_file) entry->state_file->notify();
}

void Loads::add_directory(const std::string& name, Entry& entry) {
  const std::string directory = parts_.directory + "/" + name;
  const uint64_t id = entry.id;
  entry.shown = true;
  parts_.tree.add_directory(directory, true);
  entry.state_file = read_only(
      [this, name, id]() -> Result<std::string> {
        constexpr std::string_view kWords[] = {"running", "done", "stopped"};
        Entry* shown = find(name, id);
        return std::string(kWords[static_cast<size_t>(shown ? shown->state : State::kStopped)]);
      },
      "running, done or stopped; flows that failed are in `result`");
  parts_.tree.add_file(directory + "/state", entry.state_file);
  parts_.tree.add_file(directory + "/result", std::make_shared<ResultFile>(*this, id));
  add_trigger(parts_.tree, directory, kStop, parts_.engine,
              [this, name, id](std::string_view text, const OperationPtr&, Answer<void> answer) {
                if (without_newline(text) != "1") {
                  return answer(Error{EINVAL, "only 1 stops a load"});
                }
                stop(name, id, std::move(answer));
              });
}

void Loads::stop(const std::string& name, uint64_t id, Answer<void> answer) {
  Entry* entry = find(name, id);
  if (!entry || entry->state != State::kRunning) {
    forget(name, id);
    return answer({});
  }
  parts_.engine.call<void>(
      [this, id]() -> Result<void> {
        end_on_core(id);
        return {};
      },
      [this, name, id, answer = std::move(answer)](Result<void> result) mutable {
        if (result) become(name, id, State::kStopped);  // it may have ended by itself meanwhile
        answer(std::move(result));
      });
}

void Loads::forget(const std::string& name, uint64_t id) {
  Entry* entry = find(name, id);
  if (!entry) return;
  bool shown = entry->shown;
  entries_.erase(name);
  parts_.engine.post_retrying([this, id] { runs_.erase(id); });
  if (shown) parts_.tree.remove(parts_.directory + "/" + name);
}

void Loads::begin_reset() {
  leaving_.clear();
  for (const auto& [name, entry] : entries_) leaving_.emplace_back(name, entry.id);
}

// A load that is still being started begins after the reset.
void Loads::stop_all() {
  for (const auto& [name, id] : leaving_) end_on_core(id);
}

void Loads::finish_reset() {
  for (const auto& [name, id] : std::exchange(leaving_, {})) {
    Entry* entry = find(name, id);
    if (entry && entry->shown) forget(name, id);
  }
}

}  // namespace rocefs
