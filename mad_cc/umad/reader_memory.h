// ReaderMemory: writes into the buffer of a thread that waits in read(2). A read of umad may end
// with an errno and data (ENOSPC), from which libibumad learns the length of a message; FUSE cannot
// answer so.
//
// Writing to another process's memory may block for ever (a file of a silent server), so separate
// threads do it, and the read is answered after a time-out. A stuck thread is not replaced: a
// process has one at work at a time, a user a few. The memory is opened with no more rights than
// the reader has; the kernel permits it as ptrace(2).
//
// Control thread.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <string>

#include "core/base/shares.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/tree/file.h"

namespace rocefs {

class ReaderMemory : public std::enable_shared_from_this<ReaderMemory> {
 public:
  static constexpr size_t kThreads = 32;
  static constexpr size_t kThreadsOfUser = 4;
  static constexpr size_t kWaiting = 1024;  // for a thread, or at work
  static constexpr TimeNs kPatience = kSecond;

  // Identifies the read(2) of `caller`, as FUSE reports it.
  struct Read {
    Caller caller;
    size_t asked = 0;   // octets, of this FUSE request
    size_t wanted = 0;  // octets that are there for it
  };
  enum class Outcome {
    kShown,      // it is in the buffer
    kFits,       // the buffer has room for what is wanted: the kernel asks for it in parts
    kFault,      // the buffer is not there, or may not be written
    kForbidden,  // ptrace(2) is
    kUnknown,    // it is not in read(2), cannot be seen, its memory blocks or another's of its own
  };
  using Done = UniqueFunction<void(Outcome)>;

  static std::shared_ptr<ReaderMemory> create(PollLoop& control);
  ~ReaderMemory();
  // Calls `done` once, now or later, or drops it when this object ends. The reader must not be
  // answered before.
  void show(const Read& read, std::string bytes, Done done);
  // Returns the number of threads at work, stuck ones included.
  size_t threads() const { return at_work_.size(); }

 private:
  struct Job;
  struct Gate;
  explicit ReaderMemory(PollLoop& control);
  enum class Turn : uint8_t { kNow, kLater, kRefused };
  Turn turn_of(const Job& job) const;
  void begin(std::shared_ptr<Job> job);
  void finish(Job& job, Outcome outcome);
  void thread_ended(const std::shared_ptr<Job>& job, Outcome outcome);
  void begin_waiting();
  void look_at_time();

  const std::shared_ptr<Gate> gate_;
  LoopTimer timer_;
  std::list<std::shared_ptr<Job>> at_work_;   // those that have a thread
  std::deque<std::shared_ptr<Job>> waiting_;  // for a thread
  std::list<std::shared_ptr<Job>> in_time_;   // begun or waiting, the oldest first
  Shares shares_{kWaiting, kWaiting / 8};     // of in_time_
};

}  // namespace rocefs
