#include "tools/rocefs/daemon/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "core/base/shares.h"
#include "core/loop/io_choice.h"
#include "fs/mount_point.h"
#include "fs/mount_watch.h"
#include "fs/session.h"
#include "pcc/card/program_server.h"
#include "rdma/client/server.h"
#include "rdma/cm/ucma_server.h"
#include "rdma/host/host_server.h"
#include "rdma/uapi/cm.h"
#include "tools/rocefs/daemon/heartbeat.h"
#include "tools/rocefs/daemon/refusal_log.h"
#include "tools/rocefs/daemon/resources_file.h"
#include "tools/rocefs/daemon/saved_state.h"
#include "tools/rocefs/instance/instance.h"

namespace rocefs {
namespace {

constexpr std::string_view kSocket = "kernel/debug/rocefs/uapi";

// Turns a path into a file name: / becomes -, other characters than letters, digits, dot and
// underscore become %XX.
std::string name_of_path(std::string_view path) {
  std::string name;
  for (char c : path.substr(path.starts_with('/'))) {
    if (c == '/') {
      name += '-';
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_') {
      name += c;
    } else {
      name += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
  }
  return name;
}

bool writable(const char* directory) {
  return directory && *directory == '/' && ::access(directory, W_OK) == 0;
}

// Effective user as seen outside of the user namespace (user_namespaces(7)).
uint64_t uid_outside_namespace() {
  std::ifstream map("/proc/self/uid_map");
  const uint64_t user = ::geteuid();
  for (uint64_t inside, outside, count; map >> inside >> outside >> count;) {
    if (user >= inside && user - inside < count) return outside + (user - inside);
  }
  return user;
}

// Name of a directory in /tmp that is free or belongs to this user: others may have taken the first
// names.
std::string own_directory_in_tmp() {
  constexpr int kMaxNames = 100;
  std::string first = fmt::format("rocefs-{}", uid_outside_namespace()), name = first;
  for (int i = 1; i < kMaxNames; ++i) {
    struct stat status;
    if (::lstat(("/tmp/" + name).c_str(), &status) != 0) break;
    if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid()) break;
    name = fmt::format("{}.{}", first, i);
  }
  return name;
}

// Runtime directory for PCC plugins: one for each mount point and owner, so that files of an
// earlier owner are not used. The root of a user namespace may see the machine's /run, which it
// cannot write.
OwnDirectories plugin_directories(const std::string& mount_point, uid_t uid, gid_t gid) {
  std::string mount = fmt::format("{}@{}", name_of_path(mount_point), uid);
  const char* run = ::geteuid() == 0 ? "/run" : nullptr;
  for (const char* directory : {run, static_cast<const char*>(std::getenv("XDG_RUNTIME_DIR"))}) {
    if (writable(directory)) return {directory, "rocefs/" + mount, uid, gid};
  }
  return {"/tmp", fmt::format("{}/{}", own_directory_in_tmp(), mount), uid, gid};
}

}  // namespace

// Members are destroyed in reverse order: servers before the parts that they serve.
class Daemon::Impl {
 public:
  Impl(const Config& config, TakeoverInput from)
      : config_(config),
        from_(std::move(from)),
        saved_(from_.journal.state<SavedState>()),
        faults_(saved_.faults),
        takes_over_(from_.descriptor >= 0) {}
  std::optional<Failure> build(const Options& options);
  std::string summary() const;
  void run(DaemonEvents events);
  ~Impl();

  int descriptor() const { return session_->descriptor(); }
  int listener() const { return clients_ ? clients_->listener() : -1; }

 private:
  void serve_programs(const Options& options);
  std::optional<Failure> choose_clock(const Options& options);
  Engine::Options engine_options(size_t cores) const;
  void attach_journal();
  void log_loop();
  std::optional<Failure> mount(const Options& options);
  Result<void> take_over();
  void save_clock();
  void watch_signals();
  void listen();
  void log_no_socket(std::string_view why);
  void serve_clients(Fd listener);
  void drop_clients();
  bool settle_clients();
  void watch_mounts();
  void begin_shutdown();
  void log(LogLevel level, std::string_view line);

  std::string mount_point_;
  const Config& config_;
  TakeoverInput from_;
  SavedState& saved_;
  Faults faults_;
  const bool takes_over_;
  ClockMode mode_ = ClockMode::kReal;
  uint64_t seed_ = 1;
  uint64_t dilation_ = 1;

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<TreeKeeper> keeper_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<MountWatch> mounts_;
  std::unique_ptr<ClientServer> clients_;
  std::unique_ptr<ProgramServer> programs_;
  std::unique_ptr<UcmaServer> channels_;
  std::unique_ptr<HostServer> host_server_;
  DaemonEvents events_;
  std::optional<Heartbeat> heartbeat_;
  RefusalLog refusals_{[this](std::string_view line) { log(LogLevel::kWarning, line); }};
  Fd signals_;
  bool ending_ = false;
};

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;
std::string Daemon::summary() const {
  return impl_->summary();
}
int Daemon::descriptor() const {
  return impl_->descriptor();
}
int Daemon::listener() const {
  return impl_->listener();
}
void Daemon::run(DaemonEvents events) {
  impl_->run(std::move(events));
}

std::variant<std::unique_ptr<Daemon>, Failure> Daemon::create(const Options& options,
                                                              const Config& config,
                                                              TakeoverInput from) {
  auto impl = std::make_unique<Impl>(config, std::move(from));
  if (std::optional<Failure> failed = impl->build(options)) return *failed;
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

std::optional<Failure> Daemon::Impl::build(const Options& options) {
  name_owner(options.uid);
  if (auto wanted = wanted_io(); !wanted) return Failure{2, wanted.error().reason};
  if (std::optional<Failure> failed = choose_clock(options)) return failed;
  if (takes_over_) {
    from_.journal.recover();
    mount_point_ = saved_.mount_point;
  } else {
    Result<std::string> point = check_mount_point(options.mount_point);
    if (!point) return Failure{1, point.error().reason};
    mount_point_ = *point;
    mount_point_.copy(saved_.mount_point, sizeof saved_.mount_point - 1);
  }
  Instance::Options wanted{engine_options(options.cores), seed_, options.uid, options.gid,
                           options.mode};
  wanted.plugins = plugin_directories(mount_point_, options.uid, options.gid);
  wanted.plugin_gid = options.plugin_gid;
  wanted.takes_over = takes_over_;
  wanted.open_files = options.open_files;
  wanted.uplink_addresses = &saved_.uplink_addresses;
  wanted.revoke_program = [this](uint64_t program) { programs_->revoke(program); };
  auto instance = Instance::create(config_, wanted);
  if (!instance) return Failure{1, instance.error().reason};
  instance_ = std::move(*instance);
  auto clients =
      ClientServer::create(instance_->engine(), instance_->fabric(), instance_->loop(),
                           [this](std::string_view line) { log(LogLevel::kInfo, line); });
  if (!clients) return Failure{1, clients.error().reason};
  clients_ = std::move(*clients);
  instance_->add_files([this] { drop_clients(); });
  serve_programs(options);
  if (auto failed = instance_->apply(config_.knobs)) return failed;
  instance_->keep_as_defaults();
  attach_journal();
  return mount(options);
}

// Programs that come by the socket: of PCC, of librdmacm, and makers of hosts.
void Daemon::Impl::serve_programs(const Options& options) {
  auto may_claim = [owner = options.uid, all = options.allow_pcc](uid_t uid) {
    return all || uid == 0 || uid == owner || uid == ::geteuid();
  };
  programs_ = std::make_unique<ProgramServer>(instance_->loop(), instance_->pcc(), may_claim);
  clients_->hand_claims_to(ROCEFS_OP_PCC_CLAIM, [this](ClientServer::Claim claim) {
    programs_->take_over(std::move(claim));
  });
  channels_ = std::make_unique<UcmaServer>(
      instance_->engine(), instance_->loop(), instance_->connections().ucma(),
      [this](std::string_view line) { log(LogLevel::kInfo, line); },
      [this](pid_t pid) {
        const Host* host = instance_->hosts().of_process(pid);
        return host ? CmScope({host->devices.begin(), host->devices.end()}) : CmScope();
      });
  clients_->hand_claims_to(ROCEFS_OP_CM_OPEN, [this](ClientServer::Claim claim) {
    channels_->take_over(std::move(claim));
  });
  instance_->hosts().keep(std::move(from_.keep), std::move(from_.kept), clients_->closer());
  auto may_make = [owner = options.uid](uid_t uid) {
    return uid == 0 || uid == owner || uid == ::geteuid();
  };
  host_server_ = std::make_unique<HostServer>(
      instance_->engine(), instance_->loop(), instance_->hosts(), may_make,
      [this](std::string_view line) { log(LogLevel::kInfo, line); });
  clients_->hand_claims_to(ROCEFS_OP_HOST_OPEN, [this](ClientServer::Claim claim) {
    host_server_->take_over(std::move(claim));
  });
  instance_->tree().add_file(
      "kernel/debug/rocefs/resources",
      std::make_shared<ResourcesFile>(instance_->engine(), clients_->clients(),
                                      instance_->connections().ucma()));
  if (from_.listener) instance_->tree().add_socket(kSocket);
}

// The command line takes precedence over the file, the file over the defaults.
std::optional<Failure> Daemon::Impl::choose_clock(const Options& options) {
  mode_ = options.clock.value_or(config_.clock.value_or(ClockMode::kReal));
  seed_ = options.seed.value_or(config_.seed.value_or(1));
  dilation_ = options.dilation.value_or(config_.dilation.value_or(1));
  Result<void> checked = check_clock(config_, mode_, dilation_);
  return checked ? std::nullopt : std::optional<Failure>({2, checked.error().reason});
}

// Engine time after a takeover: the real clock counts the time without a worker, the virtual clock
// goes on where it stood.
Engine::Options Daemon::Impl::engine_options(size_t cores) const {
  const SavedClock& saved = saved_.clock;
  TimeNs start = saved_.time.now.load();
  if (mode_ == ClockMode::kReal && saved.dilation != 0) {
    TimeNs passed = (monotonic_ns() - saved.monotonic) / static_cast<TimeNs>(saved.dilation);
    start = std::max(start, saved.engine + passed);
  }
  Engine::Options wanted{mode_, dilation_, start, &saved_.time};
  wanted.cores = cores;
  return wanted;
}

// Restores the state of a dead worker and records from now on all that the next one needs.
void Daemon::Impl::attach_journal() {
  Journal& journal = from_.journal;
  instance_->dmesg().keep(journal, saved_.log);
  keeper_ =
      std::make_unique<TreeKeeper>(journal, saved_.tree, instance_->tree(), instance_->loop());
  if (takes_over_) {
    instance_->driver().restore(saved_.unbound);
    for (const std::string& lost : keeper_->restore()) log(LogLevel::kErr, "not restored: " + lost);
    instance_->pcc().begin_modes(saved_.host_modes);
    faults_.point("restore");
  } else {
    instance_->pcc().begin_modes();
  }
  instance_->clock_files().keep(journal, saved_.stores);
  if (takes_over_) instance_->clock_files().taken_over();
  journal.before_commit([this] {
    save_clock();
    if (instance_->driver().unbound() != saved_.unbound)
      from_.journal.stage(saved_.unbound, instance_->driver().unbound());
    if (instance_->pcc().host_modes() != saved_.host_modes)
      from_.journal.stage(saved_.host_modes, instance_->pcc().host_modes());
  });
  keeper_->watch();
  log_loop();
}

void Daemon::Impl::log_loop() {
  Engine& engine = instance_->engine();
  if (engine.io_kind() == IoKind::kIoUring) return;
  log(LogLevel::kInfo, fmt::format("packet core: poll loop: {}", engine.why_poll()));
}

void Daemon::Impl::save_clock() {
  SavedClock clock{instance_->engine().now(), monotonic_ns(),
                   instance_->engine().clock().dilation()};
  from_.journal.stage(saved_.clock, clock);
}

std::optional<Failure> Daemon::Impl::mount(const Options& options) {
  SessionOptions session;
  session.journal = &from_.journal;
  session.saved = &saved_.session;
  session.faults = &faults_;
  session.invalidator = std::move(from_.invalidator);
  session.stored = [this](const std::string& path) { keeper_->stored(path); };
  session.attributes_changed = [this](const std::string& path) {
    keeper_->attributes_changed(path);
  };
  session.source = options.source;
  session.mount_options = options.mount_options;
  session.debug = options.debug;
  session.refused = [this](const std::string& path, const Caller& caller, const Error& why) {
    refusals_.say(path, caller, why);
  };
  session.accepted = [this](const std::string& path, std::string_view text, const Caller& caller,
                            std::optional<Moment> applied) {
    if (applied) instance_->clock_files().stored(path, text, *applied);
    if (!instance_->dmesg().logs(LogLevel::kDebug)) return;
    log(LogLevel::kDebug, fmt::format("{}: '{}' from pid {}", path, text, caller.pid));
  };
  session.unmounted = [this] { begin_shutdown(); };
  Result<std::unique_ptr<Session>> created =
      Session::create(std::move(session), instance_->tree(), instance_->loop());
  if (!created) return Failure{2, created.error().reason};
  session_ = std::move(*created);
  Result<void> mounted = takes_over_ ? take_over() : session_->mount(mount_point_);
  if (!mounted) {
    return Failure{1, fmt::format("{}: {}", mount_point_, mounted.error().reason)};
  }
  if (std::optional<dev_t> device = session_->device()) {
    instance_->files().set_own_mount(*device);
  }
  if (!takes_over_) log(LogLevel::kInfo, summary());
  return std::nullopt;
}

Result<void> Daemon::Impl::take_over() {
  Result<TakenOver> taken = session_->take_over(mount_point_, from_.descriptor);
  if (!taken) return taken.error();
  const WorkerDeath& death = saved_.death;
  std::string fired = faults_.take_fired();
  if (!fired.empty()) fired = fmt::format(" (fault point {} fired)", fired);
  log(LogLevel::kErr, fmt::format("worker {} died of {}{}; worker {} took over {:.1f} ms later",
                                  death.pid, death.cause, fired, ::getpid(),
                                  static_cast<double>(monotonic_ns() - death.monotonic) / 1e6));
  log(LogLevel::kErr,
      fmt::format(
          "{} requests in flight {}; {} open files; flows, loads, captures, faults and PCC have "
          "ended, counters begin anew",
          taken->in_flight, taken->resent ? "are resent" : "ended with EIO", taken->open_files));
  return {};
}

std::string Daemon::Impl::summary() const {
  constexpr size_t kMaxNamed = 32;
  const std::vector<DeviceSpec>& all = instance_->topology().devices;
  std::string devices;
  if (all.size() <= kMaxNamed) {
    for (const DeviceSpec& device : all) devices += " " + device.name;
  } else {
    devices = fmt::format(" {} devices, {} to {}", all.size(), all.front().name, all.back().name);
  }
  std::string clock = mode_ == ClockMode::kVirtual ? "virtual" : "real";
  if (dilation_ != 1) clock += fmt::format(" / {}", dilation_);
  const size_t count = instance_->engine().cores();
  std::string cores = count > 1 ? fmt::format(", {} packet cores", count) : "";
  return fmt::format("{}:{}, clock {}, seed {}{}", mount_point_, devices, clock, seed_, cores);
}

void Daemon::Impl::log(LogLevel level, std::string_view line) {
  instance_->log(level, line);
}

void Daemon::Impl::watch_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  instance_->loop().watch(signals_.get(), [this] {
    signalfd_siginfo info;
    (void)!::read(signals_.get(), &info, sizeof info);
    begin_shutdown();
  });
}

// Creates the clients' socket in the first worker; later ones got it from the supervisor, if there
// is one.
void Daemon::Impl::listen() {
  auto ready = [this] {
    watch_mounts();
    events_.ready();
  };
  if (takes_over_) {
    if (from_.listener) serve_clients(std::move(from_.listener));
    return ready();
  }
  if (!session_->device()) {
    log_no_socket("the mount table does not show the mount");
    return ready();
  }
  session_->listen_at(std::string(kSocket), [this, ready](Result<Fd> listener) {
    if (listener) {
      serve_clients(std::move(*listener));
    } else {
      log_no_socket(listener.error().reason);
    }
    ready();
  });
}

void Daemon::Impl::log_no_socket(std::string_view why) {
  log(LogLevel::kWarning, fmt::format("no {}, verbs programs find no device: {}", kSocket, why));
}

void Daemon::Impl::serve_clients(Fd listener) {
  clients_->listen(std::move(listener));
}

// Closes the clients' socket and the hosts' namespaces once the mount has left the mount table:
// they keep the file system alive, which would never end after `umount -l`. Connected clients stay.
void Daemon::Impl::watch_mounts() {
  if (listener() < 0) return;
  auto gone = [this] {
    clients_->close_listener();
    instance_->hosts().forget_namespaces();
    events_.detached();
  };
  auto blind = [this](std::string_view why) {
    log(LogLevel::kWarning, fmt::format("cannot watch the mount table: {}", why));
  };
  mounts_ = std::make_unique<MountWatch>(*session_->device(), instance_->loop(), gone, blind);
}

// Finishes the capture before the loop stops.
void Daemon::Impl::begin_shutdown() {
  if (std::exchange(ending_, true)) return;
  clients_->close_listener();
  events_.ending();
  instance_->files().shorten_timeouts();
  instance_->capture().stop([this](Result<void>) { instance_->loop().stop(); });
}

void Daemon::Impl::run(DaemonEvents events) {
  events_ = std::move(events);
  watch_signals();
  instance_->engine().start();
  if (events_.alive_every > 0) {
    heartbeat_.emplace(events_.alive_every, instance_->loop(), instance_->engine(), events_.alive);
  }
  listen();
  instance_->loop().run();
}

void Daemon::Impl::drop_clients() {
  clients_->drop_all();
  programs_->drop_all();
  channels_->drop_all();
}

// Waits for copies from and to clients' memory. False if one hangs: the kernel may still write into
// buffers that would be freed.
bool Daemon::Impl::settle_clients() {
  constexpr TimeNs kTimeout = kSecond;
  TimeNs end = monotonic_ns() + kTimeout;
  while (!clients_->settle()) {
    if (monotonic_ns() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

Daemon::Impl::~Impl() {
  heartbeat_.reset();
  session_.reset();
  if (clients_) clients_->drop_all();
  programs_.reset();
  channels_.reset();
  host_server_.reset();
  if (instance_) instance_->stop_engine();
  if (clients_ && !settle_clients()) std::_Exit(0);
  if (instance_) instance_->end_traffic();
}

}  // namespace rocefs
