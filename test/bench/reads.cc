// Effect of file reads on packets under the real clock: time of a message, from the moment at which
// it was due to be posted to its completion in wall time, one message after the other over the
// default topology, with 1,000 reads a second and without.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/clock.h"
#include "core/loop/poll_loop.h"
#include "core/tree/clock_files.h"
#include "core/tree/tree.h"
#include "fs/session.h"
#include "rdma/tree/files.h"
#include "rdma/tree/pci_driver.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

constexpr uint32_t kMessage = 4096;
constexpr TimeNs kPhase = 400 * kMillisecond;
constexpr int kRounds = 9;

// Sends one message at a time; on the core's thread.
class Messages {
 public:
  Messages(Engine& engine, Fabric& fabric)
      : pair_(fabric, "mb_0", "mb_1", {kMessage, 4, 128}),
        engine_(engine),
        scheduler_(engine.scheduler()),
        ended_(event_of<&Messages::take>(this)),
        phases_(2 * kRounds) {
    for (auto& phase : phases_) phase.reserve(200'000);
    pair_.set_listener([this] { scheduler_.after(ended_, 0); });
    post();
  }
  void set_phase(int phase) { phase_.store(phase); }
  // After the engine has stopped: a quantile of each phase that begins with `first`, every second
  // one; the median of them, in microseconds.
  double quantile_us(double fraction, size_t first) {
    std::vector<double> of_phases;
    for (size_t i = first; i < phases_.size(); i += 2) {
      auto& all = phases_[i];
      require(!all.empty(), "no message ended");
      auto rank = static_cast<long>(fraction * static_cast<double>(all.size() - 1));
      std::nth_element(all.begin(), all.begin() + rank, all.end());
      of_phases.push_back(all[static_cast<size_t>(rank)] / 1000);
    }
    return median(of_phases);
  }

 private:
  void post() {
    begun_ = scheduler_.now();
    pair_.write(0, kMessage);
  }
  void take(TimeNs) {
    if (pair_.completed() == 0) return;
    int phase = phase_.load(std::memory_order_relaxed);
    if (phase >= 0) {
      auto& samples = phases_[static_cast<size_t>(phase)];
      if (samples.size() < samples.capacity()) {
        samples.push_back(static_cast<double>(engine_.clock().now() - begun_));
      }
    }
    post();
  }

  Pair pair_;
  Engine& engine_;
  Scheduler& scheduler_;
  Event ended_;
  TimeNs begun_ = 0;
  std::atomic<int> phase_{-1};
  std::vector<std::vector<double>> phases_;
};

// A mounted tree with an engine behind it, in this process.
class MountedNic {
 public:
  // `up` says whether it could be mounted; why not is printed.
  MountedNic() : tree_(::getuid(), ::getgid()) {
    if (Result<void> started = start(); !started) {
      fmt::print(stderr, "skipped: {}\n", started.error().reason);
      return;
    }
    up = true;
  }
  ~MountedNic() {
    stop();
    if (!directory_.empty()) ::rmdir(directory_.c_str());
  }
  void stop() {
    loop_.stop();
    if (server_.joinable()) server_.join();
    session_.reset();
    if (engine_) engine_->stop();
  }
  Messages& messages() { return *messages_; }
  const std::string& directory() const { return directory_; }
  bool up = false;

 private:
  Result<void> start() {
    auto engine = Engine::create({}, loop_);
    if (!engine) return engine.error();
    engine_ = std::move(*engine);
    fabric_ = std::make_unique<Fabric>(default_topology(), 1, engine_->scheduler(),
                                       engine_->outstanding());
    LinkKnobs knobs(*fabric_, *engine_);
    driver_ = std::make_unique<PciDriver>(tree_, *fabric_, *engine_, knobs);
    add_fabric_files(tree_, "kernel/debug/rocefs", *fabric_, knobs, *engine_);
    clock_ = std::make_unique<ClockFiles>(tree_, "kernel/debug/rocefs/clock", *engine_,
                                          [](std::string) {});
    messages_ = std::make_unique<Messages>(*engine_, *fabric_);
    char name[] = "/tmp/rocefs-bench.XXXXXX";
    directory_ = ::mkdtemp(name);
    auto session = Session::create({}, tree_, loop_);
    if (!session) return session.error();
    session_ = std::move(*session);
    if (Result<void> mounted = session_->mount(directory_); !mounted) {
      return mounted.error();
    }
    engine_->start();
    server_ = std::thread([this] { loop_.run(); });
    return {};
  }

  PollLoop loop_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Fabric> fabric_;
  Tree tree_;
  std::unique_ptr<PciDriver> driver_;
  std::unique_ptr<ClockFiles> clock_;
  std::unique_ptr<Messages> messages_;
  std::unique_ptr<Session> session_;
  std::thread server_;
  std::string directory_;
};

std::vector<std::string> readable_files(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    bool readable = (entry.symlink_status().permissions() & std::filesystem::perms::owner_read) !=
                    std::filesystem::perms::none;
    if (entry.symlink_status().type() == std::filesystem::file_type::regular && readable) {
      files.push_back(entry.path());
    }
  }
  return files;
}

// Every file in turn, 1,000 a second, until `end`; returns how many.
uint64_t read_in_turn(const std::vector<std::string>& files, size_t& next, TimeNs end) {
  uint64_t reads = 0;
  for (TimeNs due = monotonic_ns(); due < end; due += kMillisecond, ++reads) {
    if (TimeNs early = due - monotonic_ns(); early > 0)
      ::usleep(static_cast<unsigned>(early / 1000));
    int fd = ::open(files[next].c_str(), O_RDONLY | O_CLOEXEC);
    next = (next + 1) % files.size();
    char text[4096];
    while (fd >= 0 && ::read(fd, text, sizeof text) > 0) {
    }
    if (fd >= 0) ::close(fd);
  }
  return reads;
}

}  // namespace

void bench_reads(Table& table) {
  MountedNic nic;
  if (!nic.up) return;
  std::vector<std::string> files = readable_files(nic.directory());
  size_t next = 0;
  uint64_t reads = 0;
  TimeNs reading = 0;
  for (int phase = 0; phase < 2 * kRounds; ++phase) {
    nic.messages().set_phase(phase);
    TimeNs begin = monotonic_ns();
    if (phase % 2 == 0) {
      ::usleep(static_cast<unsigned>(kPhase / 1000));
    } else {
      reads += read_in_turn(files, next, begin + kPhase);
      reading += monotonic_ns() - begin;
    }
    nic.messages().set_phase(-1);
  }
  nic.stop();
  Messages& messages = nic.messages();
  double rate = static_cast<double>(reads) * 1e9 / static_cast<double>(reading);
  for (double fraction : {0.5, 0.99}) {
    double without = messages.quantile_us(fraction, 0), with = messages.quantile_us(fraction, 1);
    table.push_back({fmt::format("{} of a 4 KiB message, {:.0f} reads/s of {} files",
                                 fraction == 0.5 ? "median" : "p99", rate, files.size()),
                     fmt::format("{:.1f} us", with), fmt::format("{:.1f} us without", without),
                     fmt::format("{:.2f}", with / without), ""});
  }
}

}  // namespace rocefs::bench
