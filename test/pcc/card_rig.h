// Card: a CardBackend with a real mango-pccd, and register pages whose queue pairs a test
// activates.
#pragma once

#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "pcc/card/card_backend.h"
#include "rdma/uapi/registers.h"
#include "test/here.h"
#include "test/skip.h"

namespace rocefs::test {

// Build directory of the test program.
inline std::filesystem::path build_directory() {
  if (const char* named = std::getenv("ROCEFS_BUILD")) return named;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

// Directory of plugins, copied by name from test/pcc/plugins.
class PluginFolder {
 public:
  explicit PluginFolder(const std::vector<std::string>& plugins) {
    char name[] = "/tmp/rocefs-plugins-XXXXXX";
    REQUIRE(::mkdtemp(name));
    path = name;
    for (const std::string& plugin : plugins) add(plugin);
  }
  ~PluginFolder() { std::filesystem::remove_all(path); }
  void add(const std::string& plugin) {
    std::filesystem::copy(build_directory() / "test/pcc/plugins" / (plugin + ".so"), path);
  }
  std::string path;
};

// Register pages, as an engine makes them.
struct Pages {
  Pages() {
    auto made = [](const char* name, size_t size, SharedMemory::Others others) {
      auto memory = SharedMemory::create(name, size, others);
      REQUIRE(memory);
      return std::make_shared<SharedMemory>(std::move(*memory));
    };
    signals = made("signals", sizeof(rocefs_signals_page), SharedMemory::Others::kRead);
    control = made("control", sizeof(rocefs_control_page), SharedMemory::Others::kWrite);
    page()->version = ROCEFS_REGISTERS_VERSION;
    page()->since_ns = static_cast<uint64_t>(monotonic_ns());
    page()->dilation = 1;
    control->at<rocefs_control_page>(0)->version = ROCEFS_REGISTERS_VERSION;
  }
  rocefs_signals_page* page() const { return signals->at<rocefs_signals_page>(0); }
  void activate(uint32_t qpn) const {
    uint32_t line = qpn - ROCEFS_FIRST_QPN;
    page()->qps[line].generation = 1;
    page()->active[line / 64] |= uint64_t{1} << (line % 64);
    ++page()->active_count;
    __atomic_fetch_add(&page()->changes, 1, __ATOMIC_RELEASE);
  }
  uint32_t window(uint32_t qpn) const {
    auto* page = control->at<rocefs_control_page>(0);
    return static_cast<uint32_t>(
        __atomic_load_n(&page->qps[qpn - ROCEFS_FIRST_QPN].window, __ATOMIC_ACQUIRE));
  }
  std::shared_ptr<SharedMemory> signals, control;
};

class Card final : public PccBackend::Listener {
 public:
  explicit Card(TimeNs patience = 20 * kSecond, std::string program = {}) {
    if (program.empty()) {
      program = build_directory() / "bin/mango-pccd";
      static const bool starts = starts_programs(program);
      if (!starts) skip("no programs of this machine can be started here");
    }
    control_ = std::thread([this] { loop.run(); });
    on_loop([&] {
      CardBackend::Options options{program, "mb_0", 1, patience};
      backend = std::make_unique<CardBackend>(loop, options, *this);
      return 0;
    });
  }
  ~Card() override {
    on_loop([this] {
      backend.reset();
      return 0;
    });
    loop.stop();
    control_.join();
  }

  template <class Work>
  std::invoke_result_t<Work> on_loop(Work work) {
    std::promise<std::invoke_result_t<Work>> done;
    loop.post([&] { done.set_value(work()); });
    return done.get_future().get();
  }
  // Runs `ask` on the backend and waits for the answer.
  template <class T, class Ask>
  Result<T> answer(Ask ask) {
    std::promise<std::shared_ptr<Result<T>>> given;
    loop.post([&] {
      ask(*backend, [&](Result<T> result) {
        given.set_value(std::make_shared<Result<T>>(std::move(result)));
      });
    });
    return std::move(*given.get_future().get());
  }
  Result<void> apply(unsigned slot) {
    return answer<void>(
        [&](auto& card, auto then) { card.apply(slot, std::nullopt, std::move(then)); });
  }
  Result<PccLoaded> load(const PluginFolder& directory, bool force = false) {
    return answer<PccLoaded>(
        [&](auto& card, auto then) { card.load(directory.path, force, std::move(then)); });
  }
  Result<void> start(const Pages& pages, unsigned pollers = 1) {
    PccBackend::Run run{pages.signals, pages.control, pollers, 60};
    return answer<void>([&](auto& card, auto then) { card.start(run, std::move(then)); });
  }
  Result<void> stop() {
    return answer<void>([&](auto& card, auto then) { card.stop(std::move(then)); });
  }
  Result<std::string> echo(const std::string& text) {
    return answer<std::string>([&](auto& card, auto then) { card.echo(text, std::move(then)); });
  }
  pid_t pid() {
    return on_loop([this] { return backend->pid(); });
  }

  // Reason of the process's death; empty after half a minute without.
  std::string death() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(30), [this] { return !death_.empty(); });
    return std::exchange(death_, {});
  }
  bool has_died() {
    std::lock_guard lock(mutex_);
    return !death_.empty();
  }
  // True if so many lines with this text are logged within half a minute.
  bool logged(const std::string& text, size_t lines = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return occurrences(text) >= lines; });
  }
  size_t lines_with(const std::string& text) {
    std::lock_guard lock(mutex_);
    return occurrences(text);
  }

  void pcc_log(LogLevel level, std::string_view line) override {
    std::lock_guard lock(mutex_);
    log_ += fmt::format("{} {}\n", static_cast<int>(level), line);
    changed_.notify_all();
  }
  void pcc_died(const std::string& why, bool) override {
    std::lock_guard lock(mutex_);
    death_ = why;
    changed_.notify_all();
  }

  PollLoop loop;
  std::unique_ptr<CardBackend> backend;

 private:
  size_t occurrences(const std::string& text) const {
    size_t count = 0;
    for (size_t at = log_.find(text); at != log_.npos; at = log_.find(text, at + 1)) ++count;
    return count;
  }

  std::thread control_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string log_, death_;
};

// Names of all algorithms after a load.
inline std::vector<std::string> card_names(const PccLoaded& loaded) {
  std::vector<std::string> result;
  for (const PccAlgorithmInfo& algorithm : loaded.algorithms) result.push_back(algorithm.name);
  return result;
}

// True if `condition` holds within half a minute.
template <class Condition>
bool soon(Condition condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace rocefs::test
