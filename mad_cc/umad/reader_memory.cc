#include "mad_cc/umad/reader_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "core/process/effective_user.h"
#include "core/process/process_memory.h"

namespace rocefs {

// Gate: access to the control thread, while it exists.
struct ReaderMemory::Gate {
  explicit Gate(PollLoop& l) : loop(&l) {}
  std::mutex mutex;
  PollLoop* loop;
};

struct ReaderMemory::Job {
  enum Phase { kPending, kWriting, kGivenUp };
  // Decision between writer and time-out: a job that is given up first is not written.
  std::atomic<Phase> phase{kPending};
  Read read;
  std::string bytes;
  // Control thread.
  pid_t process = 0;
  Done done;  // null with a thread at work: it is stuck, and its reader has been answered
  TimeNs until = 0;
  Shares::Share share;
};

namespace {

// Smallest part: a shorter FUSE request is the whole of its read(2).
constexpr size_t kMinPart = 31 * 4096;

// Returns the process of a thread, or the thread itself if that is unknown.
pid_t process_of(pid_t thread) {
  char text[1024];
  std::snprintf(text, sizeof text, "/proc/%d/status", thread);
  Fd status(::open(text, O_RDONLY | O_CLOEXEC));
  ssize_t got = status ? ::read(status.get(), text, sizeof text - 1) : -1;
  if (got < 0) return thread;
  text[got] = '\0';
  pid_t process = 0;
  const char* line = std::strstr(text, "\nTgid:");
  return line && std::sscanf(line, " Tgid: %d", &process) == 1 && process > 0 ? process : thread;
}

bool forbids(int code) {
  return code == EPERM || code == EACCES;
}

// Content of /proc/PID/syscall (proc(5)): `running`, or the number and the arguments of the system
// call that the thread waits in.
struct Syscall {
  long number = -1;
  uint64_t buffer = 0, count = 0;
};
ReaderMemory::Outcome look(int proc, Syscall& found) {
  char text[256];
  ssize_t got = ::pread(proc, text, sizeof text - 1, 0);
  if (got < 0) {
    return forbids(errno) ? ReaderMemory::Outcome::kForbidden : ReaderMemory::Outcome::kUnknown;
  }
  text[got] = '\0';
  unsigned long fd, buffer, count;
  if (std::sscanf(text, "%ld %lx %lx %lx", &found.number, &fd, &buffer, &count) != 4) {
    found.number = -1;
    return ReaderMemory::Outcome::kUnknown;
  }
  found.buffer = buffer;
  found.count = count;
  return ReaderMemory::Outcome::kShown;
}

// Returns whether it is read(2), also in the table of system calls of 32-bit programs.
bool is_read(const Syscall& call) {
#ifdef __x86_64__
  constexpr long kRead32 = 3;
  constexpr uint64_t kEnd32 = uint64_t{1} << 32;
  if (call.number == kRead32) return call.count <= kEnd32 && call.buffer <= kEnd32 - call.count;
#endif
  return call.number == SYS_read;
}

// Descriptors of the reader, opened while it certainly waits, so that they stay valid if its thread
// id is reused later.
struct Opened {
  Fd call;  // where it waits
  std::optional<ProcessMemory> memory;
};
ReaderMemory::Outcome open(pid_t thread, Opened& out) {
  using Outcome = ReaderMemory::Outcome;
  Fd directory = open_process(thread);
  if (!directory) return Outcome::kUnknown;
  out.call = Fd(::openat(directory.get(), "syscall", O_RDONLY | O_CLOEXEC));
  if (!out.call) return forbids(errno) ? Outcome::kForbidden : Outcome::kUnknown;
  auto memory = ProcessMemory::open(directory);
  if (!memory) return forbids(memory.error().code) ? Outcome::kForbidden : Outcome::kUnknown;
  out.memory.emplace(std::move(*memory));
  return Outcome::kShown;
}

// Finds the waiting reader, or the reason for not finding it. The kernel checks the permission at
// each access.
ReaderMemory::Outcome find_read(const ReaderMemory::Read& read, Opened& opened, Syscall& found,
                                const std::function<bool()>& wanted) {
  using Outcome = ReaderMemory::Outcome;
  auto as_reader = [&](auto act) {
    EffectiveUser reader(read.caller.uid, read.caller.gid);
    return reader ? act() : Outcome::kForbidden;
  };
  Outcome seen = as_reader([&] { return open(read.caller.pid, opened); });
  if (seen != Outcome::kShown) return seen;
  while (wanted()) {
    seen = as_reader([&] { return look(opened.call.get(), found); });
    if (seen == Outcome::kForbidden) return seen;
    if (found.number >= 0) return Outcome::kShown;
    ::poll(nullptr, 0, 1);  // it is still on its way to sleep
  }
  return Outcome::kUnknown;
}

// `may_write` returns whether the time-out has not come first.
ReaderMemory::Outcome show_now(const ReaderMemory::Read& read, std::string& bytes,
                               const std::function<bool()>& wanted,
                               const std::function<bool()>& may_write) {
  using Outcome = ReaderMemory::Outcome;
  Opened opened;
  Syscall call;
  if (Outcome seen = find_read(read, opened, call, wanted); seen != Outcome::kShown) return seen;
  bool in_parts = read.asked >= kMinPart && call.count > read.asked;
  if (!is_read(call) || (call.count != read.asked && !in_parts)) return Outcome::kUnknown;
  if (call.count >= read.wanted) return Outcome::kFits;
  if (!may_write()) return Outcome::kUnknown;
  const iovec from{bytes.data(), bytes.size()};
  bool wrote = opened.memory->allows(call.buffer, bytes.size(), true) &&
               opened.memory->write(call.buffer, {&from, 1});
  return wrote ? Outcome::kShown : Outcome::kFault;
}

}  // namespace

std::shared_ptr<ReaderMemory> ReaderMemory::create(PollLoop& control) {
  return std::shared_ptr<ReaderMemory>(new ReaderMemory(control));
}

ReaderMemory::ReaderMemory(PollLoop& control)
    : gate_(std::make_shared<Gate>(control)), timer_(control, [this] { look_at_time(); }) {}

ReaderMemory::~ReaderMemory() {
  for (const std::shared_ptr<Job>& job : in_time_) {
    job->phase.store(Job::kGivenUp);
    job->done = nullptr;
  }
  std::lock_guard lock(gate_->mutex);
  gate_->loop = nullptr;
}

void ReaderMemory::show(const Read& read, std::string bytes, Done done) {
  if (read.caller.pid <= 0) return done(Outcome::kUnknown);
  auto job = std::make_shared<Job>();
  job->read = read;
  job->process = process_of(read.caller.pid);
  if (turn_of(*job) == Turn::kRefused) return done(Outcome::kUnknown);
  job->share = shares_.take(read.caller.uid, is_privileged(read.caller.uid));
  if (!job->share) return done(Outcome::kUnknown);
  job->bytes = std::move(bytes);
  job->done = std::move(done);
  job->until = monotonic_ns() + kPatience;
  in_time_.push_back(job);
  waiting_.push_back(std::move(job));
  if (in_time_.size() == 1) timer_.arm(kPatience);
  begin_waiting();
}

// Decides when a job may start. A process whose memory has blocked is refused until that has ended.
ReaderMemory::Turn ReaderMemory::turn_of(const Job& job) const {
  size_t of_process = 0, of_user = 0, stuck = 0, stuck_of_user = 0;
  for (const std::shared_ptr<Job>& one : at_work_) {
    bool same_user = one->read.caller.uid == job.read.caller.uid;
    bool is_stuck = !one->done;
    if (is_stuck && one->process == job.process) return Turn::kRefused;
    of_process += one->process == job.process;
    of_user += same_user;
    stuck += is_stuck;
    stuck_of_user += is_stuck && same_user;
  }
  if (stuck == kThreads || stuck_of_user == kThreadsOfUser) return Turn::kRefused;
  bool later = of_process != 0 || of_user == kThreadsOfUser || at_work_.size() == kThreads;
  return later ? Turn::kLater : Turn::kNow;
}

// Starts waiting jobs. Callbacks may add more from within this call.
void ReaderMemory::begin_waiting() {
  std::shared_ptr<ReaderMemory> here = shared_from_this();
  std::erase_if(waiting_, [](const std::shared_ptr<Job>& job) { return !job->done; });
  for (size_t i = 0; i < waiting_.size();) {
    std::shared_ptr<Job> job = waiting_[i];
    Turn turn = turn_of(*job);
    if (turn == Turn::kLater) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<long>(i));
    if (turn == Turn::kNow)
      begin(std::move(job));
    else
      finish(*job, Outcome::kUnknown);
  }
}

// Starts a thread for the job, because the write may get stuck.
void ReaderMemory::begin(std::shared_ptr<Job> job) {
  at_work_.push_back(job);
  auto work = [job, gate = gate_, owner = weak_from_this()]() mutable {
    ::prctl(PR_SET_NAME, "rocefs-umad");
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    auto wanted = [&] { return job->phase.load() == Job::kPending; };
    auto may_write = [&] {
      Job::Phase waiting = Job::kPending;
      return job->phase.compare_exchange_strong(waiting, Job::kWriting);
    };
    Outcome outcome = show_now(job->read, job->bytes, wanted, may_write);
    std::lock_guard lock(gate->mutex);
    if (!gate->loop) return;
    gate->loop->post([job = std::move(job), owner = std::move(owner), outcome] {
      if (std::shared_ptr<ReaderMemory> here = owner.lock()) here->thread_ended(job, outcome);
    });
  };
  try {
    std::thread(std::move(work)).detach();  // it may be stuck when all else ends
  } catch (const std::system_error&) {
    at_work_.remove(job);
    finish(*job, Outcome::kUnknown);
  }
}

void ReaderMemory::thread_ended(const std::shared_ptr<Job>& job, Outcome outcome) {
  at_work_.remove(job);
  finish(*job, outcome);
  begin_waiting();
}

void ReaderMemory::finish(Job& job, Outcome outcome) {
  in_time_.remove_if([&](const std::shared_ptr<Job>& one) { return one.get() == &job; });
  job.share.reset();
  if (Done done = std::exchange(job.done, nullptr)) done(outcome);
}

void ReaderMemory::look_at_time() {
  TimeNs now = monotonic_ns();
  std::shared_ptr<ReaderMemory> here = shared_from_this();  // whoever is told may let go of it
  while (!in_time_.empty() && in_time_.front()->until <= now) {
    std::shared_ptr<Job> job = in_time_.front();
    job->phase.store(Job::kGivenUp);
    finish(*job, Outcome::kUnknown);
  }
  begin_waiting();
  if (!in_time_.empty()) timer_.arm(in_time_.front()->until - now);
}

}  // namespace rocefs
