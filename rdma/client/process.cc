#include "rdma/client/process.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/shares.h"
#include "core/loop/time_slice.h"
#include "core/process/effective_user.h"
#include "rdma/packet/store.h"

namespace rocefs {
namespace {

constexpr size_t kMaxParts = 1024;  // per move
constexpr std::chrono::milliseconds kRetrySend{10};
constexpr int kYields = 100;

}  // namespace

bool Credentials::privileged() const {
  return is_privileged(uid);
}

std::shared_ptr<Process> Process::create(const Credentials& who, Fd pidfd, Engine& engine) {
  std::shared_ptr<Process> process(new Process(who, std::move(pidfd), engine));
  process->thread_ = process;
  // The thread may outlive the process object: it may be stuck in the client's memory.
  try {
    std::thread([process] { process->run_thread(); }).detach();
  } catch (const std::system_error&) {
    return nullptr;
  }
  return std::shared_ptr<Process>(process.get(), [process](Process* own) { own->finish(); });
}

std::shared_ptr<Process> Process::create_threadless(const Credentials& who, Fd pidfd,
                                                    Engine& engine) {
  return std::shared_ptr<Process>(new Process(who, std::move(pidfd), engine));
}

void Process::work_now() {
  Jobs batch;
  {
    std::lock_guard lock(mutex_);
    batch.swap(jobs_);
  }
  has_jobs_.store(false);
  if (sockets_.waiting()) sockets_.sweep();
  std::vector<Done> done;
  work(batch, done);
  hand_back(done);
}

Process::Process(const Credentials& who, Fd pidfd, Engine& engine)
    : who_(who), pidfd_(std::move(pidfd)), core_(&engine.core(0)) {}

Process::~Process() = default;

void Process::read(uint64_t address, std::span<uint8_t> into, MemoryListener& listener,
                   uint64_t ticket, Pages pages) {
  ask({Job::Kind::kRead, pages, 1, into.size(), address, &listener, ticket, nullptr},
      {into.data(), into.size()});
}

void Process::write(uint64_t address, std::span<const uint8_t> from, MemoryListener& listener,
                    uint64_t ticket, Pages pages) {
  auto* only_read = const_cast<uint8_t*>(from.data());
  ask({Job::Kind::kWrite, pages, 1, from.size(), address, &listener, ticket, nullptr},
      {only_read, from.size()});
}

// A range that continues the last one becomes a part of it.
void Process::ask(Job&& move, const iovec& here) {
  asked_.here.push_back(here);
  asked_bytes_ += move.length;
  if (!asked_.empty()) {
    Job& last = asked_.list.back();
    bool goes_on = last.kind == move.kind && last.address + last.length == move.address &&
                   last.listener == move.listener && last.ticket + last.parts == move.ticket &&
                   last.length + move.length <= kLump && last.parts < kMaxParts &&
                   last.pages == move.pages;
    if (goes_on) {
      last.length += move.length;
      ++last.parts;
      return;
    }
  }
  asked_.list.push_back(std::move(move));
}

void Process::run(Work work) {
  Job& job = asked_.list.emplace_back();
  job.extra = std::make_unique<Extra>();
  job.extra->work = std::move(work);
}

bool Process::take_copier(std::shared_ptr<SharedMemory> memory) {
  if (copier_ || thread_.expired()) return false;
  copier_.emplace(std::move(memory));
  return true;
}

void Process::cancel_late() {
  if (copier_) copier_->cancel_late();
}

bool Process::send(uint32_t socket, std::span<const uint8_t> message) {
  if (unsent_.fetch_add(1) >= kMaxUnsent) {  // the client's memory blocks, requests go on
    unsent_.fetch_sub(1);
    return false;
  }
  Job& job = asked_.list.emplace_back();
  job.extra = std::make_unique<Extra>();
  job.kind = Job::Kind::kSend;
  job.address = socket;
  job.extra->message = EventMessage(message);
  return true;
}

void Process::close_socket(uint32_t socket) {
  Job& job = asked_.list.emplace_back();
  job.kind = Job::Kind::kClose;
  job.address = socket;
}

uint32_t Process::adopt(Fd fd) {
  uint32_t socket = sockets_.announce();
  Job job;
  job.kind = Job::Kind::kAdopt;
  job.address = socket;
  job.extra = std::make_unique<Extra>();
  job.extra->fd = std::move(fd);
  submit(std::move(job));
  return socket;
}

void Process::submit(Job job) {
  std::lock_guard lock(mutex_);
  idle_.store(false);
  jobs_.list.push_back(std::move(job));
  has_jobs_.store(true);
  changed_.notify_one();
}

uint64_t Process::flush() {
  if (asked_.empty() || held_up_) return 0;
  if (copier_ && (copying() || copier_->suits(asked_bytes_))) return divide();
  return hand_over(asked_, std::exchange(asked_bytes_, 0));
}

// Hands all jobs to the thread.
uint64_t Process::hand_over(Jobs& jobs, uint64_t bytes) {
  if (jobs.empty()) return 0;
  for (const Job& job : jobs.list) threads_ += job.parts;
  bool waiting;
  {
    std::lock_guard lock(mutex_);
    idle_.store(false);
    if (jobs_.empty()) {
      jobs_.swap(jobs);
    } else {
      jobs_.append(jobs);
    }
    has_jobs_.store(true);
    waiting = waiting_.load();
    if (waiting && given_.load() == 0) given_.store(monotonic_ns());
  }
  jobs.clear();
  if (waiting) changed_.notify_one();
  return bytes;
}

// Gives moves to the copier and other jobs to the thread, until a job has to wait.
uint64_t Process::divide() {
  Jobs others;
  size_t count = 0, at = 0;
  uint64_t bytes = 0;
  bool room = true;
  for (Job& job : asked_.list) {
    bool moves = job.kind == Job::Kind::kRead || job.kind == Job::Kind::kWrite;
    bool passes = job.kind == Job::Kind::kSend || job.kind == Job::Kind::kClose;
    if (moves) room = room && copier_->has_room(job.length);
    bool waits = moves ? threads_ > 0 || (!room && copying()) : !passes && copying();
    if (waits) break;
    if (moves) {
      auto here = std::span(asked_.here).subspan(at, job.parts);
      at += job.parts;
      bytes += job.length;
      room ? post(job, here) : others.push(job, here);
    } else {
      room &= job.parts == 0;  // no move overtakes an atomic or a store
      others.push(job, {});
    }
    ++count;
  }
  asked_.drop(count, at);
  asked_bytes_ -= bytes;
  held_up_ = !asked_.empty();
  hand_over(others, 0);
  return bytes;
}

void Process::post(Job& job, std::span<const iovec> here) {
  Copied& copied = copied_.emplace_back();
  copied.here.assign(here.begin(), here.end());
  copied.job = std::move(job);
  bool out = copied.job.kind == Job::Kind::kWrite;
  copier_->post({out, copied.job.address, copied.job.length, copied.here});
}

// Moves that the copier has not done go to the thread.
bool Process::take_copied() {
  if (ended_.load()) copier_->end();
  bool any = false;
  Jobs others;
  while (auto done = copier_->take()) {
    any = true;
    Copied copied = std::move(copied_.front());
    copied_.pop_front();
    if (!*done) {
      others.push(copied.job, copied.here);
      continue;
    }
    const Job& job = copied.job;
    for (uint32_t i = 0; i < job.parts; ++i) job.listener->memory_done(job.ticket + i, true);
  }
  hand_over(others, 0);
  return any;
}

TimeNs Process::lag() const {
  TimeNs given = given_.load(std::memory_order_relaxed);
  return given == 0 ? 0 : monotonic_ns() - given;
}

bool Process::take_done() {
  bool any = copier_ && take_copied();
  if (any) held_up_ = false;
  if (!has_done()) return any;
  held_up_ = false;
  {
    std::lock_guard lock(mutex_);
    taken_.swap(done_);
    has_done_.store(false);
  }
  for (Done& done : taken_) {
    threads_ -= done.parts;
    for (uint32_t i = 0; i < done.parts; ++i) done.listener->memory_done(done.ticket + i, done.ok);
    if (done.after) done.after();
  }
  taken_.clear();
  return true;
}

void Process::finish() {
  ended_.store(true);
  std::lock_guard lock(mutex_);
  finished_.store(true);
  changed_.notify_one();
}

void Process::run_thread() {
  ::prctl(PR_SET_NAME, "rocefs-copy");
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ask_for_short_slices();
  work_loop();
}

void Process::work_loop() {
  Jobs batch;
  std::vector<Done> done;
  for (;;) {
    // After much work more comes soon: yield instead of sleeping, which saves a wake-up. Not after
    // little work, because sched_yield(2) puts the thread last.
    auto bored = [&] { return !has_jobs_.load() && !finished_.load(); };
    for (int i = 0; moved_ >= kBulkBytes && i < kYields && bored(); ++i) ::sched_yield();
    {
      std::unique_lock lock(mutex_);
      auto wanted = [&] { return !jobs_.empty() || finished_.load(); };
      waiting_.store(true);
      if (jobs_.empty()) rest();
      if (sockets_.waiting()) {
        changed_.wait_for(lock, kRetrySend, wanted);
      } else {
        changed_.wait(lock, wanted);
      }
      waiting_.store(false);
      given_.store(0);
      batch.clear();
      batch.swap(jobs_);
      has_jobs_.store(false);
      if (batch.empty() && finished_.load()) break;
    }
    if (sockets_.waiting()) sockets_.sweep();
    work(batch, done);
    hand_back(done);
  }
  sockets_.close_all();
}

// With the lock. The core forgets an ended process once it is idle, which its last jobs may not
// tell: not all have results.
void Process::rest() {
  idle_.store(true);
  if (ended_.load() && !finished_.load()) core_.load()->nudge();
}

void Process::hand_back(std::vector<Done>& done) {
  if (done.empty()) return;
  {
    std::lock_guard lock(mutex_);
    if (done_.empty()) {
      done_.swap(done);
    } else {
      std::move(done.begin(), done.end(), std::back_inserter(done_));
    }
    has_done_.store(true);
    if (!finished_.load())
      core_.load()->nudge();  // the engine may be destroyed once finished_ is set
  }
  done.clear();
}

void Process::work(Jobs& batch, std::vector<Done>& done) {
  bool touch = !ended_.load() && alive();
  moved_ = 0;
  std::span<const iovec> here(batch.here);
  for (size_t at = 0; at < batch.list.size();) {
    Job& job = batch.list[at];
    switch (job.kind) {
      case Job::Kind::kRead:
      case Job::Kind::kWrite: {
        if (!touch) {
          done.push_back({job.listener, job.ticket, job.parts, false, {}});
          here = here.subspan(job.parts);
          break;
        }
        uint64_t before = moved_;
        size_t moves = move(std::span(batch.list).subspan(at), here, done);
        for (const Job& one : std::span(batch.list).subspan(at, moves)) {
          here = here.subspan(one.parts);
        }
        at += moves;
        if (moved_ - before >= kBulkBytes) hand_back(done);
        continue;
      }
      case Job::Kind::kAtomic:
        done.push_back({job.listener, job.ticket, 1, touch && change(job), {}});
        break;
      case Job::Kind::kStore:
        store_tail_last(job.extra->into, job.extra->from.data(), job.extra->from.size());
        done.push_back({job.listener, job.ticket, 1, true, {}});
        break;
      case Job::Kind::kRun:
        if (Task after = job.extra->work()) done.push_back({nullptr, 0, 0, true, std::move(after)});
        break;
      case Job::Kind::kAdopt:
        sockets_.adopt(static_cast<uint32_t>(job.address), std::move(job.extra->fd));
        break;
      case Job::Kind::kClose:
        sockets_.close(static_cast<uint32_t>(job.address));
        break;
      case Job::Kind::kSend:
        unsent_.fetch_sub(1);
        sockets_.send(static_cast<uint32_t>(job.address), job.extra->message);
        break;
    }
    ++at;
  }
}

// Moves the jobs at the head with the same direction, at most kChunk; returns their number.
size_t Process::move(std::span<const Job> batch, std::span<const iovec> here,
                     std::vector<Done>& done) {
  size_t count = 0;
  uint64_t bytes = 0;
  for (const Job& job : batch) {
    bool fits = bytes + job.length <= kChunk;
    if (job.kind != batch[0].kind || (count > 0 && !fits)) break;
    ++count;
    bytes += job.length;
    if (transfer(job, job.address, here.first(job.parts))) {
      done.push_back({job.listener, job.ticket, job.parts, true, {}});
    } else {
      move_parts(job, here.first(job.parts), done);
    }
    here = here.subspan(job.parts);
  }
  moved_ += bytes;
  return count;
}

// Moves part by part, to report which ones fail.
void Process::move_parts(const Job& job, std::span<const iovec> here, std::vector<Done>& done) {
  uint64_t address = job.address;
  for (uint32_t i = 0; i < job.parts; ++i) {
    bool ok = transfer(job, address, here.subspan(i, 1));
    done.push_back({job.listener, job.ticket + i, 1, ok, {}});
    address += here[i].iov_len;
  }
}

// Moves a part of a job. What the process may not touch itself is looked for in its maps, where no
// one did so before: the memory file does not refuse it.
bool Process::transfer(const Job& job, uint64_t address, std::span<const iovec> here) {
  const ProcessMemory* there = memory();
  if (!there) return false;
  bool reads = job.kind == Job::Kind::kRead;
  if (job.pages == Pages::kOnDemand) {
    uint64_t length = 0;
    for (const iovec& part : here) length += part.iov_len;
    if (!there->allows(address, length, !reads)) return false;
  }
  return reads ? there->read(address, here) : there->write(address, here);
}

// Atomic against other requests: this thread does them all.
bool Process::change(const Job& job) {
  uint64_t number = 0;
  const iovec here{&number, sizeof number};
  Job move{Job::Kind::kRead, job.pages, 1, sizeof number, job.address, nullptr, 0, nullptr};
  if (!transfer(move, move.address, {&here, 1})) return false;
  *job.extra->original = number;
  number = job.extra->operation.result(number);
  move.kind = Job::Kind::kWrite;
  return transfer(move, move.address, {&here, 1});
}

// The PID may be reused as soon as the process was waited for.
bool Process::alive() const {
  pollfd watched{pidfd_.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 0;
}

// Opened at first use: under Yama a client grants access only after it has connected.
const ProcessMemory* Process::memory() {
  if (!std::exchange(opened_, true)) {
    Fd directory = open_process(who_.pid);
    if (!directory || !alive()) return nullptr;  // the PID was already reused
    EffectiveUser client(who_.uid, who_.gid);
    if (!client) return nullptr;
    if (auto opened = ProcessMemory::open(directory)) memory_.emplace(std::move(*opened));
  }
  return memory_ ? &*memory_ : nullptr;
}

bool Process::holds(uint64_t address, uint32_t number) {
  uint32_t found = 0;
  const iovec here{&found, sizeof found};
  const ProcessMemory* there = memory();
  return there && there->read(address, {&here, 1}) && found == number;
}

bool Process::populated(uint64_t address, uint64_t length, bool writes) {
  const ProcessMemory* there = memory();
  if (!there || !there->allows(address, length, writes)) return false;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint8_t byte = 0;
  const iovec here{&byte, sizeof byte};
  for (uint64_t at = address; at - address < length; at = (at / page + 1) * page) {
    if (ended_.load() || !there->read(at, {&here, 1})) return false;
  }
  return true;
}

}  // namespace rocefs
