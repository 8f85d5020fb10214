#include "tools/rocefs/instance/instance.h"

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/tree/file_walk.h"
#include "core/tree/function_file.h"
#include "core/tree/get_file.h"
#include "core/tree/knob_file.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/reference.h"
#include "core/tree/set_file.h"
#include "core/tree/trigger.h"
#include "core/version/version.h"
#include "pcc/card/card_backend.h"
#include "pcc/card/virtual_backend.h"
#include "rdma/network/region_plan.h"
#include "rdma/nic/device.h"
#include "rdma/tree/files.h"
#include "rdma/tree/switch_files.h"
#include "rdma/tree/uplink_files.h"
#include "rdma/uplink/uplink.h"
#include "tools/rocefs/instance/knob_settings.h"

namespace rocefs {

Result<void> check_clock(const Config& config, ClockMode mode, uint64_t dilation) {
  if (mode == ClockMode::kReal) return {};
  auto at = [&](int line) { return line == 0 ? "" : fmt::format("{}:{}: ", config.name, line); };
  if (dilation != 1) {
    int line = dilation == config.dilation ? config.dilation_line : config.clock_line;
    return errorf(EINVAL, "{}dilation requires the real clock", at(line));
  }
  if (config.topology && !config.topology->uplinks.empty()) {
    const UplinkSpec& uplink = config.topology->uplinks.front();
    return errorf(EINVAL, "{}uplink {}: the kernel's network needs the real clock", at(uplink.line),
                  uplink.name);
  }
  return {};
}

namespace {

std::string cores_text(const Fabric& fabric, size_t cores) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < cores; ++i) lines.push_back(fmt::format("{}:", i));
  for (const auto& device : fabric.devices()) {
    lines[device->fabric().core()] += " " + device->name();
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

Instance::Instance(const Config& config, const Options& options)
    : config_(config),
      options_(options),
      topology_(config.topology ? *config.topology : default_topology()) {}

Result<std::unique_ptr<Instance>> Instance::create(const Config& config, const Options& options) {
  std::unique_ptr<Instance> instance(new Instance(config, options));
  // Forks a helper: before there are threads, and descriptors to inherit.
  instance->files_ = std::make_unique<CallerFiles>(
      instance->loop_, [self = instance.get()](const std::string& line) {
        if (self->engine_) self->log(LogLevel::kErr, line);  // else repeated by the next attempt
      });
  // Virtual time has one core, or regions: the order of a run's events does not depend on threads.
  Engine::Options engine_options = options.engine;
  const bool real = options.engine.mode == ClockMode::kReal;
  const bool in_regions = !real && options.engine.regions > 0;
  const CorePlan plan = in_regions ? plan_regions(instance->topology_, options.engine.regions)
                                   : CorePlan(instance->topology_, real ? options.engine.cores : 1);
  engine_options.cores = in_regions ? 1 : plan.cores();
  if (in_regions) engine_options.regions = plan.cores();
  Result<std::unique_ptr<Engine>> engine = Engine::create(engine_options, instance->loop_);
  if (!engine) return engine.error();
  instance->engine_ = std::move(*engine);
  instance->fabric_ =
      std::make_unique<Fabric>(instance->topology_, options.seed, *instance->engine_, plan);
  if (Result<void> opened = instance->open_registers(); !opened) return opened.error();
  if (Result<void> opened = instance->open_uplinks(); !opened) return opened.error();
  instance->tree_ = std::make_unique<Tree>(options.uid, options.gid, options.mode);
  return instance;
}

// Opens the devices' register pages, which show the engine's clock to PCC programs.
Result<void> Instance::open_registers() {
  for (const auto& device : fabric_->devices()) {
    Registers& registers = device->registers();
    if (Result<void> opened = registers.open(engine_->mode()); !opened) return opened;
    registers.set_clock(engine_->clock().reading());
    engine_->clock().on_change(
        [&registers](const ClockReading& clock) { registers.set_clock(clock); });
  }
  return {};
}

Result<void> Instance::open_uplinks() {
  auto warn = [this](const std::string& line) {
    engine_->tell_control([this, line] { log(LogLevel::kWarning, line); });
  };
  auto at = options_.takes_over ? Uplink::At::kTakeover : Uplink::At::kStart;
  for (const auto& uplink : fabric_->uplinks()) {
    Result<void> opened = uplink->open(*engine_, loop_, warn, at, options_.uplink_addresses);
    if (!opened) return opened;
  }
  return {};
}

Instance::~Instance() {
  stop_engine();
  end_traffic();
}

void Instance::stop_engine() {
  if (files_) files_->finish();
  files_.reset();
  if (engine_) engine_->stop();
}

void Instance::add_files(std::function<void()> drop_clients) {
  std::string debug(kDebugDirectory);
  LinkKnobs knobs(*fabric_, *engine_);
  add_pcc();
  add_mads(debug, knobs);
  add_connections();
  hosts_ = std::make_unique<Hosts>(
      *engine_, loop_, *fabric_, *tree_, debug + "/hosts",
      [this](LogLevel level, const std::string& line) { log(level, line); });
  if (engine_->mode() == ClockMode::kReal) connections_->search_neighbours(loop_, *hosts_);
  driver_ = std::make_unique<PciDriver>(
      *tree_, *fabric_, *engine_, knobs,
      std::vector<DeviceExtension*>{pcc_.get(), mads_.get(), connections_.get(), hosts_.get()});
  add_fabric_files(*tree_, debug, *fabric_, knobs, *engine_);
  add_switch_files(*tree_, debug, *fabric_, *engine_);
  add_uplink_files(*tree_, debug, *fabric_, *engine_);
  clock_files_ = std::make_unique<ClockFiles>(
      *tree_, debug + "/clock", *engine_,
      [this](std::string why) { log(LogLevel::kErr, "clock/at: " + why); });
  tree_->add_file(debug + "/abi", constant(fmt::format("{}", kTreeAbi),
                                           "version of the tree: of names, formats and meanings "
                                           "that programs rely on"));
  tree_->add_file(debug + "/version", constant(kVersion, "version of rocefs"));
  tree_->add_file(debug + "/seed", constant(fmt::format("{}", options_.seed),
                                            "the seed of all random choices of this mount"));
  tree_->add_file(debug + "/loop",
                  constant(std::string(name(engine_->io_kind())),
                           "the packet core's input and output: io_uring, or poll where io_uring "
                           "may not be used, which dmesg explains"));
  tree_->add_file(debug + "/cores", constant(cores_text(*fabric_, engine_->cores()),
                                             "packet cores, a line each: its number and devices"));
  dmesg_.add_files(*tree_, debug, *engine_);
  add_get_file(*tree_, debug, loop_);
  add_set_file(*tree_, debug, *engine_);
  capture_ = std::make_shared<CaptureFile>(*engine_, *fabric_, *files_,
                                           [this](std::string why) { log(LogLevel::kErr, why); });
  capture_->add_file(*tree_, debug);
  traffic_ = std::make_unique<Traffic>(
      Traffic::Parts{*engine_, *fabric_, *tree_, *files_, loop_, debug + "/traffic",
                     [this](const std::string& line) { log(LogLevel::kWarning, line); }});
  loads_ = std::make_unique<Loads>(Loads::Parts{*engine_, *fabric_, *tree_, debug + "/loads"});
  inject_ = std::make_unique<Inject>(*tree_, debug + "/inject", *engine_, *fabric_, knobs);
  add_reset_file(*tree_, debug, *engine_, reset_parts(std::move(drop_clients), knobs));
  add_reference_file(*tree_, debug, loop_);
}

void Instance::add_pcc() {
  auto own_log = [this](LogLevel level, const std::string& line) { log(level, line); };
  auto driver_log = [this](const std::string& line) {
    dmesg_.log(LogLevel::kInfo, engine_->now(), line);
  };
  auto make_backend = [this](Device& device, PccBackend::Listener& listener) {
    return make_pcc_backend(device, listener);
  };
  pcc_ = std::make_unique<Pcc>(Pcc::Parts{*tree_, *engine_, *fabric_, *files_, make_backend,
                                          options_.plugins, config_.mgmt, options_.revoke_program,
                                          own_log, driver_log});
}

void Instance::add_mads(const std::string& debug, const LinkKnobs& knobs) {
  auto warn = [this](const std::string& line) { log(LogLevel::kWarning, line); };
  auto set_link = [this, knobs](const Link& link, bool up) {
    store_link_state(*engine_, knobs, link, up);
  };
  mads_ = std::make_unique<Mads>(
      Mads::Parts{*tree_, *engine_, *fabric_, loop_, set_link, debug, config_.mad_semantics, warn});
}

// The salt differs for each mount on the real clock: far ends on the network remember connections
// of an earlier mount.
void Instance::add_connections() {
  bool real = engine_->mode() == ClockMode::kReal;
  timespec now = date_now();
  uint64_t salt =
      real ? mix64(static_cast<uint64_t>(now.tv_sec) << 30 | static_cast<uint64_t>(now.tv_nsec))
           : 0;
  connections_ =
      std::make_unique<Connections>(*tree_, *engine_, *fabric_, std::string(kDebugDirectory), salt);
}

std::unique_ptr<PccBackend> Instance::make_pcc_backend(Device& device,
                                                       PccBackend::Listener& listener) {
  // The seed differs by device: queue pairs with the same number draw different random numbers.
  uint64_t seed = options_.seed ^ fnv1a64(device.name());
  CardBackend::Options card{own_pccd(), device.name(), seed};
  card.open_files = options_.open_files;
  card.uid = options_.uid;
  card.gid = options_.plugin_gid.value_or(options_.gid);
  if (engine_->mode() == ClockMode::kReal) {
    return std::make_unique<CardBackend>(loop_, std::move(card), listener);
  }
  return std::make_unique<VirtualBackend>(*engine_, device, loop_, std::move(card), listener);
}

ResetParts Instance::reset_parts(std::function<void()> drop_clients, const LinkKnobs& knobs) {
  ResetParts parts;
  // A reset that was scheduled, as in a replayed log, keeps the rest of the schedule.
  parts.before.push_back([this](const Operation& operation, Answer<void> answer) {
    if (operation.origin() == Operation::Origin::kSchedule) return answer({});
    clock_files_->schedule().clear(std::move(answer));
  });
  parts.before.push_back(
      [this](const Operation&, Answer<void> answer) { capture_->stop(std::move(answer)); });
  parts.before.push_back([drop_clients](const Operation&, Answer<void> answer) {
    if (drop_clients) drop_clients();  // reaches the core before the parts that follow
    answer({});
  });
  parts.before.push_back(
      [this](const Operation&, Answer<void> answer) { driver_->bind_all(std::move(answer)); });
  parts.before.push_back(
      [this](const Operation&, Answer<void> answer) { pcc_->reset(std::move(answer)); });
  parts.before.push_back([this](const Operation&, Answer<void> answer) {
    traffic_->begin_reset();
    loads_->begin_reset();
    answer({});
  });
  parts.before.push_back([this](const Operation&, Answer<void> answer) {
    mads_->drop_clients();
    answer({});
  });
  parts.on_core.push_back([this] {
    traffic_->stop_all();
    loads_->stop_all();
    if (on_reset_) on_reset_();
  });
  parts.on_core.push_back([this] { mads_->reset(); });
  parts.on_core.push_back([this] { inject_->clear_all(); });
  parts.on_core.push_back([this] { fabric_->reset(); });
  parts.knobs.push_back([knobs](const ResetParts::VisitKnobs& visit) { knobs.each_made(visit); });
  parts.knobs.push_back(
      [this](const ResetParts::VisitKnobs& visit) { pcc_->each_kept_knobs(visit); });
  parts.counters.push_back([this] { fabric_->clear_counters(); });
  parts.counters.push_back([this] { connections_->clear_counters(); });
  parts.counters.push_back([this] { mads_->clear_counters(); });
  parts.after.push_back([this] {
    traffic_->finish_reset();
    loads_->finish_reset();
  });
  parts.after.push_back([this] { mads_->finish_reset(); });
  parts.after.push_back([this] { inject_->finish_reset(); });
  parts.after.push_back([this] { pcc_->finish_reset(); });
  parts.after.push_back([this] { log(LogLevel::kInfo, "reset"); });
  return parts;
}

// Finds what [knobs] may set: knobs, and triggers that can be read back. Other triggers are
// commands, not state.
std::shared_ptr<Attribute> Instance::find_setting(const std::string& path) {
  Tree::Node* node = tree_->follow(path);
  if (!node) return nullptr;
  if (auto knob = std::dynamic_pointer_cast<KnobFile>(node->file)) return knob;
  auto trigger = std::dynamic_pointer_cast<TriggerFile>(node->file);
  return trigger && trigger->readable() ? trigger : nullptr;
}

// Stores before the engine has started: the answer comes at once unless another process has to act
// first.
Result<void> Instance::store_now(const std::string& path, const std::string& value) {
  std::shared_ptr<Attribute> file = find_setting(path);
  if (!file) return Error{ENOENT, "no knob has this path"};
  std::optional<Result<void>> result;
  bool waits = false;
  auto operation = std::make_shared<Operation>(Caller{});
  operation->set_identity(own_identity());
  file->store(value, operation, [&](Result<void> stored) {
    result = std::move(stored);
    if (waits) loop_.stop();
  });
  waits = true;
  while (!result) loop_.run();
  return *result;
}

// A reason may name the path of a knob: of a pattern, which one.
SettingRefusal Instance::refused(const KnobSetting& setting, std::string why) const {
  if (why.starts_with(setting.path + ": ")) why.erase(0, setting.path.size() + 2);
  return {{2, fmt::format("{}:{}: {}: {}", config_.name, setting.line, setting.path, why)},
          &setting};
}

// Separates the knobs from the others. A file that is not there may come with a trigger before it:
// parameters with their algorithm.
std::optional<SettingRefusal> Instance::sort(const std::vector<KnobSetting>& settings,
                                             KnobSettings& knobs,
                                             std::vector<const KnobSetting*>& others) {
  for (const KnobSetting& setting : settings) {
    WalkBudget budget;
    Result<std::vector<std::string>> found = matching_files(*tree_, setting.path, budget);
    if (!found) return refused(setting, found.error().reason);
    const std::vector<std::string>& paths = *found;
    auto is_knob = [this](const std::string& path) { return find_knob(*tree_, path) != nullptr; };
    if (paths.empty() && others.empty()) return refused(setting, "no file has such a path");
    if (paths.empty() || !std::all_of(paths.begin(), paths.end(), is_knob)) {
      others.push_back(&setting);
    } else if (Result<void> added = knobs.add(setting); !added) {
      return refused(setting, added.error().reason);
    }
  }
  return std::nullopt;
}

// Files of algorithms may come with a trigger before them.
std::optional<SettingRefusal> Instance::check(const std::vector<KnobSetting>& settings) {
  KnobSettings knobs(*tree_);
  std::vector<const KnobSetting*> others;
  if (auto refusal = sort(settings, knobs, others)) return refusal;
  if (auto refusal = knobs.check()) return refused(*refusal->setting, refusal->why);
  for (const KnobSetting* setting : others) {
    WalkBudget budget;
    Result<std::vector<std::string>> paths = matching_files(*tree_, setting->path, budget);
    if (!paths) return refused(*setting, paths.error().reason);
    for (const std::string& path : *paths) {
      const bool comes = setting != others.front() && path.find("/pcc/") != path.npos;
      if (find_setting(path) || (comes && !tree_->follow(path))) continue;
      return refused(*setting, "no knob has this path");
    }
  }
  return std::nullopt;
}

std::optional<SettingRefusal> Instance::apply(const std::vector<KnobSetting>& settings) {
  KnobSettings knobs(*tree_);
  std::vector<const KnobSetting*> others;
  if (auto refusal = sort(settings, knobs, others)) return refusal;
  if (auto refusal = knobs.store()) return refused(*refusal->setting, refusal->why);
  for (const KnobSetting* setting : others) {
    WalkBudget budget;
    Result<std::vector<std::string>> paths = matching_files(*tree_, setting->path, budget);
    if (!paths) return refused(*setting, paths.error().reason);
    Result<void> stored;
    if (paths->empty()) stored = Error{ENOENT, "no file has such a path"};
    for (size_t i = 0; stored && i < paths->size(); ++i) {
      stored = store_now((*paths)[i], setting->value);
    }
    if (!stored) return refused(*setting, stored.error().reason);
  }
  return std::nullopt;
}

// Knobs that neither apply() has stored nor anybody has looked for have their defaults.
void Instance::keep_as_defaults() {
  for (const auto& one : fabric_->switches()) {
    one->set_warning([this](const std::string& text) {
      engine_->tell_control([this, text] { log(LogLevel::kWarning, text); });
    });
  }
  tree_->each_made_file([](const std::string&, const std::shared_ptr<File>& file) {
    if (auto knob = std::dynamic_pointer_cast<KnobFile>(file)) knob->set()->keep_as_defaults();
  });
}

void Instance::log(LogLevel level, std::string_view line) {
  dmesg_.log(level, engine_->now(), fmt::format("rocefs: {}", line));
}

}  // namespace rocefs
