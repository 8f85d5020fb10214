// Process: the process of a verbs client, and the copy thread that moves its memory. The engine
// queues moves and gets results later, so that memory that blocks for ever stalls only its owner.
//
// The memory is accessed with the client's own rights, and is bound to the process at that moment:
// neither a program that it executes by exec(2) nor a process with the same PID is touched.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/engine.h"
#include "core/process/process_memory.h"
#include "rdma/client/copier.h"
#include "rdma/client/event_sockets.h"
#include "rdma/packet/memory.h"

namespace rocefs {

struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;

  // Root and the daemon's own user.
  bool privileged() const;
};

class Process {
 public:
  // Maximum number of bytes moved before their results are reported.
  static constexpr size_t kChunk = 512 * 1024;
  // Bytes to collect before a hand-over, if more come soon.
  static constexpr size_t kLump = kChunk / 2;
  // Bytes whose move takes a while.
  static constexpr uint64_t kBulkBytes = 16 * 1024;

  // Control thread. `pidfd` becomes readable when the process has died. The thread ends when the
  // object is unused and all jobs are done; the engine outlives its last answer. Null if no thread
  // can be started.
  static std::shared_ptr<Process> create(const Credentials& who, Fd pidfd, Engine& engine);
  // Single-threaded variant, for fuzzers: work_now() does the jobs that flush() handed over.
  static std::shared_ptr<Process> create_threadless(const Credentials& who, Fd pidfd,
                                                    Engine& engine);
  void work_now();
  ~Process();

  const Credentials& credentials() const { return who_; }
  int pidfd() const { return pidfd_.get(); }

  // Pages of a region: populated() before, or looked at by each move (on-demand paging).
  enum class Pages : uint8_t { kPopulated, kOnDemand };
  // Core thread. Jobs are done in order; take_done() calls the listener. Spans and `original` live
  // until then.
  void read(uint64_t address, std::span<uint8_t> into, MemoryListener& listener, uint64_t ticket,
            Pages pages = Pages::kPopulated);
  void write(uint64_t address, std::span<const uint8_t> from, MemoryListener& listener,
             uint64_t ticket, Pages pages = Pages::kPopulated);
  void atomic(uint64_t address, const AtomicOperation& operation, uint64_t& original,
              MemoryListener& listener, uint64_t ticket, Pages pages = Pages::kPopulated);
  // Copies into memory of the daemon that the client shares, in the order of the jobs. `keep` lives
  // until then.
  void store(std::shared_ptr<const void> keep, uint8_t* into, std::span<const uint8_t> from,
             MemoryListener& listener, uint64_t ticket);
  // Runs `work` on the copy thread after all earlier jobs, and the task that it returns, if any, on
  // the core.
  using Work = UniqueFunction<Task()>;
  void run(Work work);
  // Sends a message of at most 16 bytes to an adopted socket. False, and the message lost, if too
  // many wait because the client's memory blocks; if too many wait for room in the socket it is
  // lost later, and forget_events() counts it.
  bool send(uint32_t socket, std::span<const uint8_t> message);
  void close_socket(uint32_t socket);
  // Any thread. False once it is closed, at either end.
  bool has_socket(uint32_t socket) { return sockets_.has(socket); }
  // Any thread. Number of open sockets; while the client's memory blocks, none is closed.
  size_t socket_count() { return sockets_.count(); }
  // Takes a thread of the client that moves its memory; large moves go to it. Once; false if there
  // is one already, or no copy thread of ours to take its place.
  bool take_copier(std::shared_ptr<SharedMemory> memory);
  // Whether the copier has moves, and needs cancel_late() from time to time: the copy thread does
  // late ones.
  bool copying() const { return !copied_.empty(); }
  void cancel_late();
  // Hands over queued jobs that can begin; returns the number of bytes.
  uint64_t flush();
  uint64_t asked_bytes() const { return asked_bytes_; }
  // How long handed-over jobs have waited for an idle thread.
  TimeNs lag() const;
  // Whether flush() or take_done() has work.
  bool busy() const {
    return (!asked_.empty() && !held_up_) || has_done() || (copier_ && copier_->has_ended());
  }
  bool has_done() const { return has_done_.load(std::memory_order_seq_cst); }
  // Reports results to listeners; returns whether there were any.
  bool take_done();

  // Control thread. Takes a descriptor from the client, which only the copy thread may use or
  // close: both could block. Returns its number.
  uint32_t adopt(Fd fd);

  // Core thread, before the first job: the packet core that takes the results. The first core until
  // then.
  void set_core(PacketCore& core) { core_.store(&core); }
  // Any thread. From now on the client is not touched: jobs fail.
  void end() { ended_.store(true); }
  // Expires when the thread has ended.
  std::weak_ptr<Process> thread() const { return thread_; }
  // Whether the thread is idle. Soon so after end(), unless the client's memory blocks; the thread
  // then nudges the engine.
  bool idle() const { return idle_.load(); }

  // Copy thread. Whether `address` holds this number: tests whether the process can be read at all.
  bool holds(uint64_t address, uint32_t number);
  // Copy thread. Removes unsent events of `cookie`.
  EventSockets::Unsent forget_events(uint64_t cookie) { return sockets_.forget(cookie); }
  // Copy thread. Whether the process may read each page of these bytes, or write as well; populates
  // them.
  bool populated(uint64_t address, uint64_t length, bool writes);

 private:
  // Job data of atomics and tasks; most jobs are moves, which are kept small.
  struct Extra {
    AtomicOperation operation;
    uint64_t* original = nullptr;
    std::shared_ptr<const void> keep;
    uint8_t* into = nullptr;
    std::span<const uint8_t> from;
    EventMessage message;
    Fd fd;
    Work work;
  };
  struct Job {
    enum class Kind : uint8_t { kRead, kWrite, kAtomic, kStore, kRun, kSend, kAdopt, kClose };
    Kind kind = Kind::kRun;
    Pages pages = Pages::kPopulated;
    uint32_t parts = 0;  // move: number of places here
    uint64_t length = 0;
    uint64_t address = 0;  // or the socket's number
    MemoryListener* listener = nullptr;
    uint64_t ticket = 0;  // ticket of the first part; the others follow
    std::unique_ptr<Extra> extra;
  };
  // In the order of the requests. Each part of each move has its place in `here`.
  struct Jobs {
    std::vector<Job> list;
    std::vector<iovec> here;

    bool empty() const { return list.empty(); }
    void clear();
    void swap(Jobs& other);
    void append(Jobs& others);
    void push(Job& job, std::span<const iovec> parts);
    void drop(size_t count, size_t places);
  };
  struct Done {
    MemoryListener* listener;  // null: run the task instead
    uint64_t ticket;
    uint32_t parts;
    bool ok;
    Task after;
  };
  // A move handed to the copier.
  struct Copied {
    Job job;
    std::vector<iovec> here;
  };
  static constexpr size_t kMaxUnsent = 4096;

  Process(const Credentials& who, Fd pidfd, Engine& engine);
  void run_thread();
  void work_loop();
  void work(Jobs& batch, std::vector<Done>& done);
  void rest();
  void hand_back(std::vector<Done>& done);
  void ask(Job&& move, const iovec& here);
  uint64_t hand_over(Jobs& jobs, uint64_t bytes);
  uint64_t divide();
  void post(Job& job, std::span<const iovec> here);
  bool take_copied();
  size_t move(std::span<const Job> batch, std::span<const iovec> here, std::vector<Done>& done);
  void move_parts(const Job& job, std::span<const iovec> here, std::vector<Done>& done);
  bool transfer(const Job& job, uint64_t address, std::span<const iovec> here);
  bool change(const Job& job);
  bool alive() const;
  const ProcessMemory* memory();
  void submit(Job job);
  void finish();

  std::weak_ptr<Process> thread_;
  const Credentials who_;
  const Fd pidfd_;
  std::atomic<PacketCore*> core_;
  Jobs asked_;                // core thread
  uint64_t asked_bytes_ = 0;  // in them
  std::vector<Done> taken_;   // core thread
  // Core thread: pending moves are either all the copier's or all the thread's, so that none
  // overtakes another.
  std::optional<Copier> copier_;
  std::deque<Copied> copied_;  // moves that the copier has
  uint64_t threads_ = 0;       // moves, atomics and stores handed to the thread
  bool held_up_ = false;       // queued jobs wait for the end of those

  std::mutex mutex_;  // protects the three members below; held briefly
  std::condition_variable changed_;
  Jobs jobs_;
  std::vector<Done> done_;

  std::atomic<bool> has_jobs_{false};
  std::atomic<bool> has_done_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> idle_{true};
  std::atomic<bool> waiting_{false};
  // When an idle thread was given work; 0 once it has taken it.
  std::atomic<TimeNs> given_{0};
  std::atomic<size_t> unsent_{0};  // messages not yet seen by the copy thread
  EventSockets sockets_;
  uint64_t moved_ = 0;  // bytes of the last batch
  bool opened_ = false;
  std::optional<ProcessMemory> memory_;  // copy thread
};

}  // namespace rocefs
