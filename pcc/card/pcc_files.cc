#include "pcc/card/pcc_files.h"

#include <cerrno>

#include "core/base/text.h"
#include "core/tree/function_file.h"
#include "core/tree/knob_file.h"
#include "core/tree/trigger.h"
#include "pcc/api/register_access.h"
#include "pcc/card/calls_file.h"
#include "pcc/card/rpc_file.h"
#include "pcc/card/status_text.h"
#include "pcc/card/trace_text.h"
#include "rdma/uapi/registers.h"

namespace rocefs {
namespace {

constexpr KnobRow kSettings[] = {
    {"num_threads", KnobType::kUint, 1, 64, "1", "", "",
     "threads that call the algorithm, each for queue pairs of its own; takes effect at the next "
     "start: num_threads_active has those of now"},
    {"interval_us", KnobType::kUint, 1, 1'000'000, "60", "", "us",
     "time between two calls of the algorithm for a queue pair"},
    {"debug", KnobType::kBool, 0, 0, "0", "", "",
     "1: the owner of the mount may attach a debugger to mango-pccd, and nothing times out while "
     "one is attached"},
    {"trace_calls", KnobType::kBool, 0, 0, "0", "", "",
     "1: each call of the algorithm is noted in `calls`, with what it saw and did"},
};
constexpr size_t kThreads = knob_index(kSettings, "num_threads");
constexpr size_t kDebug = knob_index(kSettings, "debug");
constexpr size_t kTraceCalls = knob_index(kSettings, "trace_calls");
constexpr size_t kIntervalKnob = knob_index(kSettings, "interval_us");

constexpr TriggerRow kAlgoTrigger{
    "algo", "ALGORITHM|none",
    "the algorithm of all queue pairs, those to come too; none at first. A "
    "store applies another, at once where PCC is active; none is for when it is not"};
constexpr TriggerRow kState{
    "state", "start|stop",
    "inactive; active: the algorithm sets the windows of all queue pairs; program: the one that "
    "owner names sets them. CFR is off unless it is inactive; whatever ends it, CFR is then "
    "what it was. EINVAL for a start while no algorithm is applied, EBUSY when the windows are "
    "taken, and for a stop while a program has claimed them"};
constexpr TriggerRow kUpdateTrigger{
    "update", "ALGORITHM NAME=VALUE [NAME=VALUE …]",
    "sets parameters of the algorithm that is applied, all or none; it "
    "sees them at its next call"};
constexpr TriggerRow kLoadTrigger{
    "load", "1|force",
    "loads every plugin of plugin_dir that is not loaded yet or has changed since, force: all; "
    "shows what became of each. Queue pairs go on with what was loaded again. ENOEXEC when one was "
    "refused: the others are loaded all the same"};
constexpr TriggerRow kUnloadTrigger{
    "unload", "ALGORITHM",
    "forgets a plugin's algorithm, which is not applied: what its file "
    "holds by then can be loaded"};
constexpr std::string_view kParameterDoc =
    "a parameter of the algorithm that is applied, as the first queue pair has it now: the "
    "directory changes with the algorithm";

unsigned interval_of(const KnobSet& settings) {
  return static_cast<unsigned>(std::get<uint64_t>(settings.value(kIntervalKnob)));
}

using Changes = PccBackend::Assignments;

// Order `ALGORITHM NAME=VALUE …`.
struct UpdateOrder {
  std::string algorithm;
  Changes changes;
};

Result<UpdateOrder> parse_update(std::string_view text) {
  std::vector<std::string_view> words = split(text, " \t");
  if (words.size() < 2) return Error{EINVAL, "ALGORITHM NAME=VALUE … is wanted"};
  UpdateOrder order{std::string(words[0]), {}};
  for (std::string_view word : std::span(words).subspan(1)) {
    size_t equals = word.find('=');
    if (equals == word.npos || equals == 0 || equals + 1 == word.size()) {
      return errorf(EINVAL, "'{}' is not NAME=VALUE", word);
    }
    std::string name(word.substr(0, equals));
    for (const auto& change : order.changes) {
      if (change.first == name) return errorf(EINVAL, "{} is given twice", name);
    }
    order.changes.emplace_back(std::move(name), word.substr(equals + 1));
  }
  return order;
}

// Interval knob: the store is answered after a running algorithm has the new interval; under the
// virtual clock the engine is held until then.
class IntervalFile final : public KnobFile, public std::enable_shared_from_this<IntervalFile> {
 public:
  IntervalFile(std::shared_ptr<KnobSet> set, PccDevice& device)
      : KnobFile(std::move(set), kIntervalKnob), device_(device) {}

  void store(std::string_view text, const OperationPtr& operation, Answer<void> answer) override {
    Engine& engine = set()->engine();
    if (engine.mode() != ClockMode::kVirtual) return set_and_settle(text, operation, answer);
    engine.call<Engine::Pause>([&engine]() -> Result<Engine::Pause> { return engine.pause(); },
                               [self = shared_from_this(), text = std::string(text), operation,
                                answer = std::move(answer)](Result<Engine::Pause> pause) mutable {
                                 if (!pause) return answer(pause.error());
                                 Answer<void> last = [pause = *pause, answer = std::move(answer)](
                                                         Result<void> result) mutable {
                                   pause.reset();
                                   answer(std::move(result));
                                 };
                                 self->set_and_settle(text, operation, last);
                               });
  }

 private:
  void set_and_settle(std::string_view text, const OperationPtr& operation, Answer<void>& answer) {
    KnobFile::store(
        text, operation,
        [self = shared_from_this(), answer = std::move(answer)](Result<void> stored) mutable {
          if (!stored) return answer(std::move(stored));
          self->device_.settle(std::move(answer));
        });
  }

  PccDevice& device_;
};

// A store's text without the newline at its end. EINVAL for a second one, as of knobs: parsers of
// numbers would overlook it.
Result<std::string> one_line(std::string_view text) {
  std::string line(without_newline(text));
  if (line.ends_with('\n')) return Error{EINVAL, "one line is wanted"};
  return line;
}

// pcc/status: shows the values that the algorithm has now.
class StatusFile final : public Stream {
 public:
  StatusFile(PccDevice& device, std::function<std::string()> text)
      : device_(device), text_(std::move(text)) {}
  void content(Answer<std::string> answer) override {
    device_.refresh([text = text_, answer = std::move(answer)](Result<void> done) mutable {
      if (!done) return answer(done.error());
      answer(text());
    });
  }
  FileDoc doc() const override {
    return {"value",
            {},
            {},
            "the device's queue pairs, its algorithm and the parameters of that, as people read "
            "them"};
  }

 private:
  PccDevice& device_;
  const std::function<std::string()> text_;
};

}  // namespace

PccFiles::PccFiles(Parts parts) : parts_(std::move(parts)) {
  parts_.device.on_change([this] {
    if (qps_) update_parameters();
  });
  parts_.device.on_state_change([this] {
    if (auto file = state_.lock()) file->notify();
  });
}

void PccFiles::bind(const std::string& directory) {
  directory_ = directory;
  bound_ = true;
  parts_.device.set_debug(false);
  parts_.device.set_trace_calls(false);
  parts_.tree.add_later(directory_, [this] { add_files(); });
}

void PccFiles::add_files() {
  if (!bound_) return;  // the device leaves
  add_settings();
  add_algorithms();
  add_plugins();
  add_views();
  qps_ = std::make_unique<QpFiles>(parts_.tree, directory_ + "/qps", parts_.device, parts_.engine,
                                   parts_.qps_changed);
  parts_.tree.add_directory(directory_ + "/params", true);
  update_parameters();
}

void PccFiles::unbind() {
  bound_ = false;
  qps_.reset();
  shown_.clear();
  parameters_.clear();
}

void PccFiles::trigger(const TriggerRow& row, Act act, TriggerFile::Show show) {
  add_trigger(
      parts_.tree, directory_, row, parts_.engine,
      [act = std::move(act)](std::string_view text, const OperationPtr&, Answer<void> answer) {
        Result<std::string> order = one_line(text);
        if (!order) return answer(order.error());
        act(std::move(*order), std::move(answer));
      },
      std::move(show));
}

void PccFiles::value(std::string_view name, std::string_view doc, FunctionAttribute::Show show) {
  parts_.tree.add_file(fmt::format("{}/{}", directory_, name), read_only(std::move(show), doc));
}

void PccFiles::add_settings() {
  add_knob_files(parts_.tree, directory_, parts_.mode);
  value("mode_active", "soc or host: the mode since the driver took the device",
        [this]() -> Result<std::string> {
          return std::string(split(kPccModeKnobs[0].words, " ")[size_t(parts_.mode_active())]);
        });
  value(
      "card_pid",
      "process that holds the device's plugins, mango-pccd, for a debugger; 0 while there is none",
      [&device = parts_.device]() -> Result<std::string> {
        return std::to_string(device.card_pid());
      });
  value("events_lost",
        "events for algorithms (rocefs_pcc) that were overwritten before they were read, since PCC "
        "became active last",
        [&device = parts_.device]() -> Result<std::string> {
          const std::shared_ptr<SharedMemory>& page = device.last_control();
          if (!page) return std::string("0");
          return std::to_string(load_announced(page->at<rocefs_control_page>(0)->events_lost));
        });
  value("slow_calls",
        "calls of the algorithm that took longer than 100 ms, since PCC became active last; a call "
        "of 1 s ends PCC. Calls in programs are not watched",
        [&device = parts_.device]() -> Result<std::string> {
          return std::to_string(device.slow_calls());
        });
  value("owner", "the program that has claimed the windows and its process, NAME (pid PID); none",
        [this]() -> Result<std::string> {
          const std::string owner = program();
          return owner.empty() ? "none" : owner;
        });
  value("num_threads_active",
        "threads that call the algorithm now, or that of the program which sets the windows; while "
        "none do, num_threads",
        [this]() -> Result<std::string> { return std::to_string(threads()); });
  settings_ = std::make_shared<KnobSet>(kSettings, parts_.engine, nullptr);
  add_knob_file(parts_.tree, directory_, std::make_shared<KnobFile>(settings_, kThreads));
  add_knob_file(parts_.tree, directory_, std::make_shared<IntervalFile>(settings_, parts_.device));
  add_knob_file(parts_.tree, directory_, std::make_shared<KnobFile>(settings_, kDebug));
  add_knob_file(parts_.tree, directory_, std::make_shared<KnobFile>(settings_, kTraceCalls));
  // The set owns this listener.
  settings_->on_change([&device = parts_.device, last = setting(kIntervalKnob),
                        settings = std::weak_ptr<KnobSet>(settings_)]() mutable {
    unsigned now = interval_of(*settings.lock());
    device.set_debug(std::get<uint64_t>(settings.lock()->value(kDebug)) == 1);
    device.set_trace_calls(std::get<uint64_t>(settings.lock()->value(kTraceCalls)) == 1);
    if (std::exchange(last, now) != now) device.set_interval(now, [](Result<void>) {});
  });
}

unsigned PccFiles::threads() const {
  return parts_.device.control() ? parts_.device.pollers() : setting(kThreads);
}

unsigned PccFiles::setting(size_t index) const {
  return static_cast<unsigned>(std::get<uint64_t>(settings_->value(index)));
}

void PccFiles::add_algorithms() {
  PccDevice& device = parts_.device;
  value("algos", "the algorithms that can be applied: built-in ones, then as they were loaded",
        [&device]() -> Result<std::string> {
          std::vector<std::string_view> names;
          for (const PccAlgorithmInfo& one : device.algorithms()) names.push_back(one.name);
          return fmt::format("{}", fmt::join(names, " "));
        });
  trigger(
      kAlgoTrigger,
      [&device](const std::string& order, Answer<void> answer) {
        device.apply(order, std::nullopt, std::move(answer));
      },
      [&device]() -> Result<std::string> {
        return device.applied() ? device.applied()->name : "none";
      });
  trigger(
      kState,
      [this](const std::string& order, Answer<void> answer) {
        change_state(order, std::move(answer));
      },
      [&device]() -> Result<std::string> { return std::string(name_of(device.state()).shown); });
  Tree::Node* state = parts_.tree.resolve(directory_ + "/state");
  state_ = std::static_pointer_cast<Attribute>(state->file);
  trigger(kUpdateTrigger, [&device](const std::string& text, Answer<void> answer) {
    Result<UpdateOrder> order = parse_update(text);
    if (!order) return answer(order.error());
    device.update(order->algorithm, std::move(order->changes), std::move(answer));
  });
}

void PccFiles::change_state(const std::string& order, Answer<void> answer) {
  if (order == "stop") return parts_.device.stop(std::move(answer));
  if (order != "start") return answer(Error{EINVAL, "start or stop is wanted"});
  parts_.device.start(setting(kThreads), setting(kIntervalKnob), std::move(answer));
}

void PccFiles::add_plugins() {
  PccDevice& device = parts_.device;
  parts_.plugins.add_file(parts_.tree, directory_);
  trigger(
      kLoadTrigger,
      [this](const std::string& order, Answer<void> answer) {
        const bool force = order == "force";
        if (!force && order != "1") return answer(Error{EINVAL, "1 or force is wanted"});
        Result<std::string> directory = parts_.plugins.ready();
        if (!directory) return answer(directory.error());
        parts_.device.load(*directory, force, std::move(answer));
      },
      [&device]() -> Result<std::string> {
        std::vector<std::string> lines;
        for (const PccLoaded::File& file : device.load_report()) {
          lines.push_back(file.loaded.empty()
                              ? in_one_line(fmt::format("{}: refused: {}", file.name, file.reason))
                              : in_one_line(fmt::format("{}: loaded {}{}", file.name, file.loaded,
                                                        file.again ? " again" : "")));
        }
        return fmt::format("{}", fmt::join(lines, "\n"));
      });
  trigger(kUnloadTrigger, [&device](const std::string& order, Answer<void> answer) {
    device.unload(order, std::move(answer));
  });
}

std::string PccFiles::program() const {
  const auto* program = parts_.device.program();
  return program ? fmt::format("{} (pid {})", program->comm, program->pid) : "";
}

std::string PccFiles::status() const {
  const PccDevice& device = parts_.device;
  PccStatus status{device.name(),      {},        device.applied(),
                   threads(),          program(), device.slow_calls(),
                   device.last_error()};
  // The algorithm that is applied waits for a start; names of a program's are not known here.
  if (device.state() == PccState::kProgramActive) status.algorithm = nullptr;
  if (const SharedMemory* signals = device.signals()) {
    status.qps = read_active_qps(*signals, device.control());
  }
  for (const QpReading& qp : status.qps) {
    if (!qp.owned || !status.algorithm) continue;
    std::string name(device.name_of(qp.slot));
    if (name != status.algorithm->name) status.others[name].push_back(qp.qpn);
  }
  return status_text(status);
}

void PccFiles::add_views() {
  PccDevice& device = parts_.device;
  Tree& tree = parts_.tree;
  tree.add_file(directory_ + "/status",
                std::make_shared<StatusFile>(device, [this] { return status(); }));
  tree.add_file(directory_ + "/snapshot",
                std::make_shared<FunctionStream>(
                    [&device] { return qp_table(device); },
                    "the files of all queue pairs, read at one moment, as CSV (RFC 4180): a line "
                    "for each, behind a line with their names"));
  tree.add_file(directory_ + "/trace",
                std::make_shared<FunctionStream>(
                    [&device] {
                      return trace_text(device.last_control().get(),
                                        [&](unsigned slot) { return device.name_of(slot); });
                    },
                    "the newest 65536 changes of windows since PCC became active last, as CSV"));
  tree.add_file(
      directory_ + "/calls",
      std::make_shared<CallsFile>([&device] { return device.last_control(); },
                                  [&device](unsigned slot) { return device.name_of(slot); }));
  tree.add_file(directory_ + "/rpc", std::make_shared<RpcFile>(device, parts_.may_send));
}

void PccFiles::update_parameters() {
  const PccAlgorithmInfo* info = parts_.device.applied();
  std::vector<std::string> names;
  if (info) {
    for (const auto& [name, value] : info->parameters) names.push_back(name);
  }
  std::string algorithm = info ? info->name : "";
  if (algorithm == shown_ && names == parameters_) return;
  std::string directory = directory_ + "/params";
  for (const std::string& name : parameters_) parts_.tree.remove(directory + "/" + name);
  shown_ = algorithm;
  parameters_ = std::move(names);
  for (const std::string& name : parameters_) add_parameter(directory, name);
}

// The row and its name belong to the file.
void PccFiles::add_parameter(const std::string& directory, const std::string& name) {
  struct Row {
    std::string name;
    TriggerRow row;
  };
  auto row = std::make_shared<Row>(Row{name, {}});
  row->row = {row->name, "a number", kParameterDoc};
  auto store = [&device = parts_.device, row, algorithm = shown_](
                   std::string_view text, const OperationPtr&, Answer<void> answer) {
    Result<std::string> value = one_line(text);
    if (!value) return answer(value.error());
    device.update(algorithm, {{row->name, std::move(*value)}}, std::move(answer));
  };
  auto show = [&device = parts_.device, row, algorithm = shown_]() -> Result<std::string> {
    if (const PccAlgorithmInfo* info = device.applied(); info && info->name == algorithm) {
      for (const auto& [one, value] : info->parameters) {
        if (one == row->name) return value;
      }
    }
    return errorf(ENODEV, "{} is not applied", algorithm);
  };
  auto refresh = [&device = parts_.device](Answer<void> answer) {
    device.refresh(std::move(answer));
  };
  add_trigger(parts_.tree, directory, row->row, parts_.engine, std::move(store), std::move(show),
              std::move(refresh));
}

}  // namespace rocefs
