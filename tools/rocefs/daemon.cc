#include "tools/rocefs/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/clock_files.h"
#include "core/config.h"
#include "core/dmesg.h"
#include "core/engine.h"
#include "core/function_file.h"
#include "core/poll_loop.h"
#include "core/topology.h"
#include "core/tree.h"
#include "core/worker.h"
#include "fs/mount_point.h"
#include "fs/session.h"
#include "rdma/capture_file.h"
#include "rdma/device.h"
#include "rdma/fabric.h"
#include "rdma/files.h"
#include "rdma/pci_driver.h"
#include "rdma/traffic.h"

namespace rocefs {
namespace {

constexpr std::string_view kDebug = "kernel/debug/rocefs";

}  // namespace

// Members are destroyed from the last to the first: what serves goes before what it serves.
class Daemon::Impl {
 public:
  std::optional<Failure> build(const Options& options);
  std::string summary() const;
  void run();
  ~Impl();

 private:
  std::optional<Failure> read_config(const Options& options);
  void add_files();
  std::optional<Failure> apply_knobs();
  std::optional<Failure> mount(const Options& options);
  void watch_signals();
  void begin_end();
  void log(std::string_view line);

  std::string mount_point_;
  Config config_;
  Topology topology_;
  ClockMode mode_ = ClockMode::kReal;
  uint64_t seed_ = 1;
  uint64_t dilation_ = 1;

  Dmesg dmesg_;
  PollLoop loop_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<PciDriver> driver_;
  std::unique_ptr<Traffic> traffic_;
  std::shared_ptr<CaptureFile> capture_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Session> session_;
  Fd signals_;
  bool ending_ = false;
};

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;
std::string Daemon::summary() const {
  return impl_->summary();
}
void Daemon::run() {
  impl_->run();
}

std::variant<std::unique_ptr<Daemon>, Failure> Daemon::create(const Options& options) {
  auto impl = std::make_unique<Impl>();
  if (std::optional<Failure> failed = impl->build(options)) return *failed;
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

std::optional<Failure> Daemon::Impl::build(const Options& options) {
  if (std::optional<Failure> failed = read_config(options)) return failed;
  Result<std::string> point = check_mount_point(options.mount_point);
  if (!point) return Failure{1, point.error().reason};
  mount_point_ = *point;
  Result<std::unique_ptr<Engine>> engine = Engine::create({mode_, dilation_}, loop_);
  if (!engine) return Failure{1, engine.error().reason};
  engine_ = std::move(*engine);
  fabric_ =
      std::make_unique<Fabric>(topology_, seed_, engine_->scheduler(), engine_->outstanding());
  tree_ = std::make_unique<Tree>(options.uid, options.gid);
  worker_ = std::make_unique<Worker>();
  add_files();
  if (std::optional<Failure> failed = apply_knobs()) return failed;
  return mount(options);
}

// The command line goes before the file, the file before the defaults.
std::optional<Failure> Daemon::Impl::read_config(const Options& options) {
  if (!options.config.empty()) {
    Result<Config> config = rocefs::read_config(options.config);
    if (!config) return Failure{2, config.error().reason};
    config_ = std::move(*config);
  }
  topology_ = config_.topology ? *config_.topology : default_topology();
  mode_ = options.clock.value_or(config_.clock.value_or(ClockMode::kReal));
  seed_ = options.seed.value_or(config_.seed.value_or(1));
  dilation_ = options.dilation.value_or(config_.dilation.value_or(1));
  if (mode_ == ClockMode::kVirtual && dilation_ != 1) {
    return Failure{2, "dilation goes with clock=real"};
  }
  return std::nullopt;
}

void Daemon::Impl::add_files() {
  std::string debug(kDebug);
  LinkKnobs knobs = make_link_knobs(*fabric_, *engine_);
  driver_ = std::make_unique<PciDriver>(*tree_, *fabric_, *engine_, knobs);
  add_fabric_files(*tree_, debug, *fabric_, knobs);
  add_clock_files(*tree_, debug + "/clock", *engine_);
  tree_->add_file(debug + "/seed", constant(fmt::format("{}", seed_)));
  tree_->add_file(debug + "/dmesg",
                  std::make_shared<FunctionStream>([this] { return dmesg_.text(); }));
  capture_ = std::make_shared<CaptureFile>(*engine_, *fabric_, *worker_,
                                           [this](std::string why) { log(why); });
  tree_->add_file(debug + "/pcap", capture_);
  traffic_ = std::make_unique<Traffic>(
      Traffic::House{*engine_, *fabric_, *tree_, *worker_, debug + "/traffic"});
}

// The engine has not started: a store is answered at once.
std::optional<Failure> Daemon::Impl::apply_knobs() {
  for (const KnobSetting& setting : config_.knobs) {
    Error refused;
    Tree::Node* node = tree_->follow(setting.path);
    auto knob = node ? std::dynamic_pointer_cast<KnobFile>(node->file) : nullptr;
    if (!knob) {
      refused = {ENOENT, "no knob has this path"};
    } else {
      knob->store(setting.value, std::make_shared<Operation>(Caller{}), [&](Result<void> result) {
        if (!result) refused = result.error();
      });
    }
    if (refused.code == 0) continue;
    return Failure{
        2, fmt::format("{}:{}: {}: {}", config_.name, setting.line, setting.path, refused.reason)};
  }
  return std::nullopt;
}

std::optional<Failure> Daemon::Impl::mount(const Options& options) {
  SessionOptions session;
  session.source = options.source;
  session.mount_options = options.mount_options;
  session.debug = options.debug;
  session.refused = [this](const std::string& path, const Error& why) {
    log(fmt::format("{}: {} ({})", path, why.reason, strerrorname_np(why.code)));
  };
  session.unmounted = [this] { begin_end(); };
  Result<std::unique_ptr<Session>> created = Session::create(std::move(session), *tree_, loop_);
  if (!created) return Failure{2, created.error().reason};
  session_ = std::move(*created);
  if (Result<void> mounted = session_->mount(mount_point_); !mounted) {
    return Failure{1, fmt::format("{}: {}", mount_point_, mounted.error().reason)};
  }
  if (std::optional<dev_t> device = mounted_device(mount_point_)) {
    capture_->set_own_mount(*device);
    traffic_->set_own_mount(*device);
  }
  log(summary());
  return std::nullopt;
}

std::string Daemon::Impl::summary() const {
  std::string devices;
  for (const DeviceSpec& device : topology_.devices) devices += " " + device.name;
  std::string clock = mode_ == ClockMode::kVirtual ? "virtual" : "real";
  if (dilation_ != 1) clock += fmt::format(" / {}", dilation_);
  return fmt::format("{}:{}, clock {}, seed {}", mount_point_, devices, clock, seed_);
}

void Daemon::Impl::log(std::string_view line) {
  dmesg_.log(engine_->now(), fmt::format("rocefs: {}", line));
}

void Daemon::Impl::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(signals_.get(), [this] {
    signalfd_siginfo info;
    (void)!::read(signals_.get(), &info, sizeof info);
    begin_end();
  });
}

// A capture's last bytes are written first.
void Daemon::Impl::begin_end() {
  if (std::exchange(ending_, true)) return;
  capture_->stop([this](Result<void>) { loop_.stop(); });
}

void Daemon::Impl::run() {
  watch_signals();
  engine_->start();
  loop_.run();
}

Daemon::Impl::~Impl() {
  session_.reset();
  worker_.reset();  // an output that is being written is finished
  if (engine_) engine_->stop();
  traffic_.reset();
}

}  // namespace rocefs
