#include "rdma/client/process.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "core/time_slice.h"

namespace rocefs {
namespace {

constexpr size_t kMaxParts = 128;
constexpr std::chrono::milliseconds kRetrySend{10};
constexpr int kYields = 100;

// Of this thread alone: the C library's functions would change all of them.
bool become(const Credentials& who) {
  if (::geteuid() != 0 || who.uid == 0) return true;
  return ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
         ::syscall(SYS_setresgid, who.gid, who.gid, who.gid) == 0 &&
         ::syscall(SYS_setresuid, who.uid, who.uid, who.uid) == 0;
}

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

}  // namespace

bool Credentials::privileged() const {
  return uid == 0 || uid == ::geteuid();
}

std::shared_ptr<Process> Process::create(const Credentials& who, Fd pidfd, Engine& engine) {
  std::shared_ptr<Process> process(new Process(who, std::move(pidfd), engine));
  process->thread_ = process;
  // The thread outlives whoever lets go of the process: it may be stuck in the client's memory.
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
  std::vector<Job> batch;
  {
    std::lock_guard lock(mutex_);
    batch.swap(jobs_);
  }
  has_jobs_.store(false);
  if (backlog_ > 0) sweep_sockets();
  std::vector<Done> done;
  work(batch, done);
  hand_back(done);
}

Process::Process(const Credentials& who, Fd pidfd, Engine& engine)
    : who_(who), pidfd_(std::move(pidfd)), engine_(engine) {}

Process::~Process() = default;

void Process::read(uint64_t address, std::span<uint8_t> into, MemoryListener& listener,
                   uint64_t ticket) {
  Job& job = asked_.emplace_back();
  job.kind = Job::Kind::kRead;
  job.address = address;
  job.local = into.data();
  job.length = static_cast<uint32_t>(into.size());
  asked_bytes_ += into.size();
  job.listener = &listener;
  job.ticket = ticket;
}

void Process::write(uint64_t address, std::span<const uint8_t> from, MemoryListener& listener,
                    uint64_t ticket) {
  Job& job = asked_.emplace_back();
  job.kind = Job::Kind::kWrite;
  job.address = address;
  job.local = const_cast<uint8_t*>(from.data());  // only read
  job.length = static_cast<uint32_t>(from.size());
  asked_bytes_ += from.size();
  job.listener = &listener;
  job.ticket = ticket;
}

void Process::atomic(uint64_t address, const AtomicOperation& operation, uint64_t& original,
                     MemoryListener& listener, uint64_t ticket) {
  Job& job = asked_.emplace_back();
  job.kind = Job::Kind::kAtomic;
  job.address = address;
  job.local = reinterpret_cast<uint8_t*>(&original);
  job.length = sizeof original;
  job.extra = std::make_unique<Extra>();
  job.extra->operation = operation;
  job.listener = &listener;
  job.ticket = ticket;
}

void Process::run(Work work) {
  Job& job = asked_.emplace_back();
  job.extra = std::make_unique<Extra>();
  job.extra->work = std::move(work);
}

bool Process::send(uint32_t socket, std::span<const uint8_t> message) {
  if (unsent_.fetch_add(1) >= kMaxWaiting) {  // its memory blocks, and it asks for more
    unsent_.fetch_sub(1);
    return false;
  }
  Job& job = asked_.emplace_back();
  job.extra = std::make_unique<Extra>();
  assert(message.size() <= job.extra->message.size());
  job.kind = Job::Kind::kSend;
  job.address = socket;
  job.length = static_cast<uint32_t>(message.size());
  std::copy(message.begin(), message.end(), job.extra->message.begin());
  return true;
}

void Process::close_socket(uint32_t socket) {
  Job& job = asked_.emplace_back();
  job.kind = Job::Kind::kClose;
  job.address = socket;
}

uint32_t Process::adopt(Fd fd) {
  Job job;
  job.kind = Job::Kind::kAdopt;
  job.address = next_socket_;
  job.extra = std::make_unique<Extra>();
  job.extra->fd = std::move(fd);
  {
    std::lock_guard lock(mutex_);
    open_.insert(next_socket_);
  }
  submit(std::move(job));
  return next_socket_++;
}

void Process::submit(Job job) {
  std::lock_guard lock(mutex_);
  idle_.store(false);
  jobs_.push_back(std::move(job));
  has_jobs_.store(true);
  changed_.notify_one();
}

void Process::flush() {
  if (asked_.empty()) return;
  bool waiting;
  {
    std::lock_guard lock(mutex_);
    idle_.store(false);
    if (jobs_.empty()) {
      jobs_.swap(asked_);
    } else {
      std::move(asked_.begin(), asked_.end(), std::back_inserter(jobs_));
    }
    has_jobs_.store(true);
    waiting = waiting_.load();
    if (waiting && given_.load() == 0) given_.store(monotonic_ns());
  }
  asked_.clear();
  asked_bytes_ = 0;
  if (waiting) changed_.notify_one();
}

TimeNs Process::lag() const {
  TimeNs given = given_.load(std::memory_order_relaxed);
  return given == 0 ? 0 : monotonic_ns() - given;
}

bool Process::take_done() {
  if (!has_done()) return false;
  {
    std::lock_guard lock(mutex_);
    taken_.swap(done_);
    has_done_.store(false);
  }
  for (Done& done : taken_) {
    if (done.listener) done.listener->memory_done(done.ticket, done.ok);
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
  if (!become(who_)) end();
  work_loop();
}

void Process::work_loop() {
  std::vector<Job> batch;
  std::vector<Done> done;
  for (;;) {
    // After much, more comes soon: it is waited for without the cost of a wake-up, while the CPU is
    // whoever's wants it. After little it is not, because who yields comes last.
    auto bored = [&] { return !has_jobs_.load() && !finished_.load(); };
    for (int i = 0; moved_ >= kMuch && i < kYields && bored(); ++i) ::sched_yield();
    {
      std::unique_lock lock(mutex_);
      auto wanted = [&] { return !jobs_.empty() || finished_.load(); };
      waiting_.store(true);
      if (jobs_.empty()) idle_.store(true);
      if (backlog_ > 0) {
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
    if (backlog_ > 0) sweep_sockets();
    work(batch, done);
    hand_back(done);
  }
  sockets_.clear();
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
    if (!finished_.load()) engine_.nudge();  // the engine may go when it has finished
  }
  done.clear();
}

void Process::work(std::span<Job> batch, std::vector<Done>& done) {
  bool touch = !ended_.load() && alive();
  moved_ = 0;
  for (size_t at = 0; at < batch.size();) {
    Job& job = batch[at];
    switch (job.kind) {
      case Job::Kind::kRead:
      case Job::Kind::kWrite:
        if (touch) {
          uint64_t before = moved_;
          size_t moved = move(batch.subspan(at));
          for (const Job& one : batch.subspan(at, moved)) {
            done.push_back({one.listener, one.ticket, one.ok, {}});
          }
          at += moved;
          if (moved_ - before >= kMuch) hand_back(done);
          continue;
        }
        break;
      case Job::Kind::kAtomic:
        job.ok = touch && change(job);
        break;
      case Job::Kind::kRun:
        if (Task after = job.extra->work()) done.push_back({nullptr, 0, true, std::move(after)});
        break;
      case Job::Kind::kAdopt:
        sweep_sockets();
        sockets_[static_cast<uint32_t>(job.address)].fd = std::move(job.extra->fd);
        break;
      case Job::Kind::kClose:
        close_now(static_cast<uint32_t>(job.address));
        break;
      case Job::Kind::kSend: {
        unsent_.fetch_sub(1);
        auto socket = sockets_.find(static_cast<uint32_t>(job.address));
        if (socket == sockets_.end()) break;
        if (socket->second.waiting.size() == kMaxWaiting) {
          note_lost(job);
          break;
        }
        socket->second.waiting.emplace_back(job.extra->message, job.length);
        ++backlog_;
        if (!send_now(socket->second)) close_now(socket->first);
        break;
      }
    }
    if (job.listener) done.push_back({job.listener, job.ticket, job.ok, {}});
    ++at;
  }
}

// The jobs at the head that go the same way, as many as one call carries; returns how many.
size_t Process::move(std::span<Job> batch) {
  std::array<iovec, kMaxParts> local{}, remote{};
  size_t count = 0, parts = 0, bytes = 0;
  while (count < batch.size() && count < kMaxParts && batch[count].kind == batch[0].kind &&
         (count == 0 || bytes + batch[count].length <= kChunk)) {
    const Job& job = batch[count];
    local[count++] = {job.local, job.length};
    bytes += job.length;
    iovec* last = parts > 0 ? &remote[parts - 1] : nullptr;
    if (last && static_cast<uint8_t*>(last->iov_base) + last->iov_len == pointer(job.address)) {
      last->iov_len += job.length;
    } else {
      remote[parts++] = {pointer(job.address), job.length};
    }
  }
  ssize_t moved = transfer(batch[0].kind, {local.data(), count}, {remote.data(), parts});
  bool whole = moved == static_cast<ssize_t>(bytes);
  moved_ += bytes;
  for (Job& job : batch.first(count)) job.ok = whole || move_one(job);
  return count;
}

bool Process::move_one(const Job& job) const {
  iovec local{job.local, job.length}, remote{pointer(job.address), job.length};
  return transfer(job.kind, {&local, 1}, {&remote, 1}) == static_cast<ssize_t>(job.length);
}

ssize_t Process::transfer(Job::Kind kind, std::span<const iovec> local,
                          std::span<const iovec> remote) const {
  auto call = kind == Job::Kind::kRead ? ::process_vm_readv : ::process_vm_writev;
  return call(who_.pid, local.data(), local.size(), remote.data(), remote.size(), 0);
}

// No other atomic comes in between: this thread does them all.
bool Process::change(const Job& job) const {
  uint64_t number = 0;
  iovec local{&number, sizeof number}, remote{pointer(job.address), sizeof number};
  constexpr auto kSize = static_cast<ssize_t>(sizeof number);
  if (transfer(Job::Kind::kRead, {&local, 1}, {&remote, 1}) != kSize) return false;
  std::memcpy(job.local, &number, sizeof number);
  number = job.extra->operation.result(number);
  return transfer(Job::Kind::kWrite, {&local, 1}, {&remote, 1}) == kSize;
}

// Who destroys an object waits until all its events are acknowledged, and these never will be.
void Process::note_lost(const Job& job) {
  uint64_t cookie = 0;
  std::memcpy(&cookie, job.extra->message.data(), sizeof cookie);
  if (lost_.size() == kMaxLost && lost_.count(cookie) == 0) return;
  Unsent& lost = lost_[cookie];
  ++(job.length == sizeof cookie ? lost.completions : lost.asynchronous);
}

bool Process::send_now(EventSocket& socket) {
  while (!socket.waiting.empty()) {
    const auto& [message, length] = socket.waiting.front();
    ssize_t sent = ::send(socket.fd.get(), message.data(), length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS;
    socket.waiting.pop_front();
    --backlog_;
  }
  return true;
}

// Sends what waits, and lets go of those whose other end is closed.
void Process::sweep_sockets() {
  std::vector<uint32_t> closed;
  for (auto& [number, socket] : sockets_) {
    pollfd other_end{socket.fd.get(), 0, 0};
    bool gone = ::poll(&other_end, 1, 0) == 1;  // POLLHUP, POLLERR
    if (gone || !send_now(socket)) closed.push_back(number);
  }
  for (uint32_t number : closed) close_now(number);
}

void Process::close_now(uint32_t number) {
  auto socket = sockets_.find(number);
  if (socket == sockets_.end()) return;
  backlog_ -= socket->second.waiting.size();
  sockets_.erase(socket);
  std::lock_guard lock(mutex_);
  open_.erase(number);
}

Process::Unsent Process::forget_events(uint64_t cookie) {
  Unsent unsent;
  if (auto lost = lost_.find(cookie); lost != lost_.end()) {
    unsent = lost->second;
    lost_.erase(lost);
  }
  for (auto& [number, socket] : sockets_) {
    backlog_ -= std::erase_if(socket.waiting, [&](const auto& event) {
      if (std::memcmp(event.first.data(), &cookie, sizeof cookie) != 0) return false;
      ++(event.second == sizeof cookie ? unsent.completions : unsent.asynchronous);
      return true;
    });
  }
  return unsent;
}

bool Process::has_socket(uint32_t socket) {
  std::lock_guard lock(mutex_);
  return open_.count(socket) > 0;
}

size_t Process::socket_count() {
  std::lock_guard lock(mutex_);
  return open_.size();
}

// Its number may be another's as soon as it has been waited for.
bool Process::alive() const {
  pollfd watched{pidfd_.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 0;
}

bool Process::holds(uint64_t address, uint32_t number) const {
  uint32_t found = 0;
  iovec local{&found, sizeof found}, remote{pointer(address), sizeof found};
  ssize_t got = ::process_vm_readv(who_.pid, &local, 1, &remote, 1, 0);
  return got == static_cast<ssize_t>(sizeof found) && found == number;
}

bool Process::populated(uint64_t address, uint64_t length) const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::array<iovec, 512> remote;
  std::array<uint8_t, 512> bytes;
  iovec local{bytes.data(), 0};
  size_t count = 0;
  for (uint64_t at = address; at - address < length; at = (at / page + 1) * page) {
    remote[count++] = {pointer(at), 1};
    bool last = (at / page + 1) * page - address >= length;
    if (count < remote.size() && !last) continue;
    if (ended_.load()) return false;
    local.iov_len = count;
    ssize_t got = ::process_vm_readv(who_.pid, &local, 1, remote.data(), count, 0);
    if (got != static_cast<ssize_t>(count)) return false;
    count = 0;
  }
  return true;
}

}  // namespace rocefs
