#include "tools/rocefs/sim/sweep_runs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/sim/runner.h"
#include "tools/rocefs/sim/sweep_merge.h"

namespace rocefs {
namespace {

constexpr int kLookMs = 100;  // between two looks for signals, and two progress lines

// Flag that the parent sets for its children. Signals would not do: a child may have had the same
// one from the terminal or the batch system, and would take the second for an order to end at once.
class StopFlag {
 public:
  StopFlag()
      : memory_(::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        flag_(memory_ == MAP_FAILED ? nullptr : new (memory_) std::atomic<bool>(false)) {}
  ~StopFlag() {
    if (flag_) ::munmap(memory_, sizeof *flag_);
  }
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;
  explicit operator bool() const { return flag_ != nullptr; }
  void set() { flag_->store(true); }
  bool is_set() const { return flag_->load(); }

 private:
  void* memory_;
  std::atomic<bool>* flag_;
};

// A run in progress.
struct SweepJob {
  SweepRun run;
  pid_t pid = -1;
  Fd pidfd;
};

class SweepRunner {
 public:
  SweepRunner(const SweepPlan& plan, const SweepOptions& options, const StopRequest& stop)
      : plan_(plan), options_(options), stop_(stop) {}

  SweepEnd run_all() {
    if (!flag_) return {print_failure({1, fmt::format("no memory: {}", std::strerror(errno))})};
    for (SweepRun& run : plan_.runs(options_.shard)) {
      bool there = options_.resume && is_complete(options_.out, run) &&
                   (!options_.view || has_recording(options_.out, run));
      if (!there) waiting_.push_back(run);
    }
    all_ = waiting_.size();
    while (!jobs_.empty() || (!waiting_.empty() && !stopping_)) {
      while (!stopping_ && !waiting_.empty() && jobs_.size() < options_.jobs) start();
      wait_for_jobs();
      look_for_signal();
      show_progress();
    }
    if (shown_) std::fputs("\r\x1b[K", stderr);
    if (!waiting_.empty()) {
      note(print_failure({1, fmt::format("{} runs were not begun", waiting_.size())}));
    }
    return {status_, mistaken_};
  }

 private:
  std::string part_of(const SweepRun& run) const {
    return options_.out + "/" + run.directory() + ".part";
  }

  void note(int status) { status_ = std::max(status_, status); }
  void complain_of(const SweepRun& run, const std::string& why) {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    note(print_failure({1, fmt::format("{}: {}", run.name(), why)}));
  }

  void start() {
    SweepRun run = waiting_.front();
    waiting_.pop_front();
    std::string part = part_of(run);
    std::error_code failed;
    std::filesystem::remove_all(part, failed);
    std::filesystem::create_directories(part, failed);
    if (failed) return complain_of(run, fmt::format("{}: {}", part, failed.message()));
    std::fflush(nullptr);
    pid_t parent = ::getpid(), pid = ::fork();
    if (pid == 0) ::_exit(run_child(run, part, parent));
    if (pid < 0) return complain_of(run, fmt::format("fork: {}", std::strerror(errno)));
    jobs_.push_back({run, pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))});
  }

  // Redirects what the run prints to its log, and runs it.
  int run_child(const SweepRun& run, const std::string& part, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return 1;
    Fd log(::open((part + "/log.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!log) return 1;
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    jobs_.clear();
    RunnerOptions options;
    options.seed = run.seed;
    options.out = part;
    options.all_flows = options_.all_flows;
    options.view = options_.view;
    options.part = true;
    options.cut_off = [this]() -> std::string {
      if (std::string_view name = stop_.signal_name(); !name.empty()) return std::string(name);
      return flag_.is_set() ? "the sweep was stopped" : "";
    };
    int status = run_variants(plan_.config(), {run.variant}, options);
    return finish_output(status);
  }

  void wait_for_jobs() {
    std::vector<pollfd> ends;
    for (const SweepJob& job : jobs_) ends.push_back({job.pidfd.get(), POLLIN, 0});
    if (ends.empty()) return;
    ::poll(ends.data(), ends.size(), kLookMs);
    std::erase_if(jobs_, [this](const SweepJob& job) {
      int status = 0;
      if (::waitpid(job.pid, &status, WNOHANG) != job.pid) return false;
      end(job.run, status);
      return true;
    });
  }

  // A run whose summary is there has ended by itself, well or not.
  void end(const SweepRun& run, int status) {
    ++ended_;
    std::string part = part_of(run), place = options_.out + "/" + run.directory();
    if (WIFSIGNALED(status)) {
      const char* name = sigabbrev_np(WTERMSIG(status));
      return complain_of(run,
                         fmt::format("died of SIG{}, see {}/log.txt", name ? name : "?", part));
    }
    std::error_code failed;
    if (!std::filesystem::exists(part + "/summary.json", failed)) {
      if (!stop_.signal_name().empty()) return not_begun(run, part);
      bool mistake = WEXITSTATUS(status) == kUsageError;
      mistaken_ = mistaken_ || mistake;
      stopping_ = stopping_ || mistake;
      tell_reasons(run, part);
      // With a mistake in the file no run has begun: its correction may use the directory.
      if (mistake) std::filesystem::remove_all(part, failed);
      return note(mistake ? kUsageError : 1);
    }
    std::filesystem::remove_all(place, failed);
    std::filesystem::rename(part, place, failed);
    if (failed) return complain_of(run, fmt::format("{}: {}", place, failed.message()));
    if (WEXITSTATUS(status) != 0) {
      tell_reasons(run, place);
      note(WEXITSTATUS(status));
    }
  }

  // The signal came before the run began.
  void not_begun(const SweepRun& run, const std::string& part) {
    std::error_code failed;
    std::filesystem::remove_all(part, failed);
    waiting_.push_front(run);
  }

  // Repeats what the run said of its failure.
  void tell_reasons(const SweepRun& run, const std::string& directory) {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    std::ifstream log(directory + "/log.txt");
    for (std::string line; std::getline(log, line);) {
      if (!line.starts_with("rocefs: ")) continue;
      std::fprintf(stderr, "rocefs: %s: %s\n", run.name().c_str(), line.c_str() + 8);
    }
  }

  void look_for_signal() {
    if (stop_.signal_name().empty() || flag_.is_set()) return;
    flag_.set();
    stopping_ = true;
    note(1);
  }

  void show_progress() {
    if (!terminal_) return;
    shown_ = true;
    std::string to_go;
    TimeNs passed = monotonic_ns() - began_;
    if (ended_ > 0 && passed > kSecond) {
      to_go =
          ", " +
          seconds_to_go(passed / static_cast<TimeNs>(ended_) * static_cast<TimeNs>(all_ - ended_)) +
          " to go";
    }
    std::fprintf(stderr, "\r\x1b[K%zu of %zu runs have ended, %zu run%s", ended_, all_,
                 jobs_.size(), to_go.c_str());
  }

  const SweepPlan& plan_;
  const SweepOptions& options_;
  const StopRequest& stop_;
  const bool terminal_ = ::isatty(STDERR_FILENO);
  const TimeNs began_ = monotonic_ns();
  StopFlag flag_;
  std::deque<SweepRun> waiting_;
  std::vector<SweepJob> jobs_;
  size_t all_ = 0, ended_ = 0;
  bool stopping_ = false, mistaken_ = false, shown_ = false;
  int status_ = 0;
};

}  // namespace

SweepEnd run_sweep(const SweepPlan& plan, const SweepOptions& options, const StopRequest& stop) {
  return SweepRunner(plan, options, stop).run_all();
}

}  // namespace rocefs
