// Process: the process of a verbs client, and the copy thread that moves its memory. The engine
// asks and is told later, so that memory that blocks for ever stalls nobody but its owner.
//
// The memory is had with no more rights than the client's own, and is the client's of that moment:
// neither a program that it becomes by exec(2) nor who gets its number is touched.
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

  // Root, and the daemon's own user: the device is theirs.
  bool privileged() const;
};

class Process {
 public:
  // What is moved at most before it is told of.
  static constexpr size_t kChunk = 512 * 1024;
  // What should be asked for before it is handed over, if more comes soon.
  static constexpr size_t kLump = kChunk / 2;
  // Bytes that it takes a while to move.
  static constexpr uint64_t kBulkBytes = 16 * 1024;

  // Control thread. `pidfd` becomes readable when the process has died. The thread ends when nobody
  // holds the process any more and nothing is left to do; the engine outlives its last answer. Null
  // if there is no thread to be had.
  static std::shared_ptr<Process> create(const Credentials& who, Fd pidfd, Engine& engine);
  // The same for who has but one thread, as a fuzzer does: work_now() does what flush() handed
  // over.
  static std::shared_ptr<Process> create_threadless(const Credentials& who, Fd pidfd,
                                                    Engine& engine);
  void work_now();
  ~Process();

  const Credentials& credentials() const { return who_; }
  int pidfd() const { return pidfd_.get(); }

  // Core thread. What is asked is done in this order; the listener is told by take_done(). Spans
  // and `original` live until then.
  void read(uint64_t address, std::span<uint8_t> into, MemoryListener& listener, uint64_t ticket);
  void write(uint64_t address, std::span<const uint8_t> from, MemoryListener& listener,
             uint64_t ticket);
  void atomic(uint64_t address, const AtomicOperation& operation, uint64_t& original,
              MemoryListener& listener, uint64_t ticket);
  // Runs `work` on the copy thread after all that was asked before, and what it returns, if
  // anything, on the core.
  using Work = UniqueFunction<Task()>;
  void run(Work work);
  // Sends a message of at most 16 bytes to a socket that adopt() has taken. False, and it is lost,
  // when too many wait for memory of the client's that blocks; when too many wait for room in the
  // socket it is lost later, and forget_events() knows of it.
  bool send(uint32_t socket, std::span<const uint8_t> message);
  void close_socket(uint32_t socket);
  // Any thread. False once it is closed, by us or at its other end.
  bool has_socket(uint32_t socket) { return sockets_.has(socket); }
  // Any thread. How many are not closed; while the client's memory blocks, none is.
  size_t socket_count() { return sockets_.count(); }
  // The client has a thread that moves its memory, which what is much is left to. Taken once;
  // false: there is one already, or no thread of ours to stand in for it.
  bool take_copier(std::shared_ptr<SharedMemory> memory);
  // Whether the copier has something to do, and needs cancel_late() now and then: what the client
  // does not do in time the copy thread does.
  bool copying() const { return !copied_.empty(); }
  void cancel_late();
  // Hands over what was asked since the last time, as far as that can begin; how many bytes.
  uint64_t flush();
  uint64_t asked_bytes() const { return asked_bytes_; }
  // For how long what was handed over has waited for a thread that had nothing else to do.
  TimeNs lag() const;
  // Whether flush() or take_done() has something to do.
  bool busy() const {
    return (!asked_.empty() && !held_up_) || has_done() || (copier_ && copier_->has_ended());
  }
  bool has_done() const { return has_done_.load(std::memory_order_seq_cst); }
  // Tells who asked; whether there was any.
  bool take_done();

  // Control thread. A descriptor from the client, which only the copy thread may use or close: both
  // could block. It is a socket's number from then on.
  uint32_t adopt(Fd fd);

  // Any thread. From now on nothing of the client is touched: what is asked fails.
  void end() { ended_.store(true); }
  // Expires when the thread has ended.
  std::weak_ptr<Process> thread() const { return thread_; }
  // Whether the thread has nothing to do. After end() it soon has, unless the client's memory
  // blocks.
  bool idle() const { return idle_.load(); }

  // Copy thread. Whether `address` holds this number: whether the process may be read at all.
  bool holds(uint64_t address, uint32_t number);
  // Copy thread. Takes back the events of `cookie` that are not sent.
  EventSockets::Unsent forget_events(uint64_t cookie) { return sockets_.forget(cookie); }
  // Copy thread. Whether the process may read each page of these bytes, or write as well; they are
  // populated.
  bool populated(uint64_t address, uint64_t length, bool writes);

 private:
  // What is asked of the thread: most are moves, which are kept small.
  struct Extra {
    AtomicOperation operation;
    uint64_t* original = nullptr;
    EventMessage message;
    Fd fd;
    Work work;
  };
  struct Job {
    enum class Kind : uint8_t { kRead, kWrite, kAtomic, kRun, kSend, kAdopt, kClose };
    Kind kind = Kind::kRun;
    uint32_t parts = 0;  // of a move: the places here of bytes that follow each other there
    uint64_t length = 0;
    uint64_t address = 0;  // or the socket's number
    MemoryListener* listener = nullptr;
    uint64_t ticket = 0;  // of the first part; those of the others follow
    std::unique_ptr<Extra> extra;
  };
  // In the order in which it was asked. Each part of each move has its place in `here`.
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
    MemoryListener* listener;  // null: there is a task instead
    uint64_t ticket;
    uint32_t parts;
    bool ok;
    Task after;
  };
  // A move that the copier has.
  struct Copied {
    Job job;
    std::vector<iovec> here;
  };
  static constexpr size_t kMaxUnsent = 4096;

  Process(const Credentials& who, Fd pidfd, Engine& engine);
  void run_thread();
  void work_loop();
  void work(Jobs& batch, std::vector<Done>& done);
  void hand_back(std::vector<Done>& done);
  void ask(Job::Kind kind, uint64_t address, const iovec& here, MemoryListener& listener,
           uint64_t ticket);
  uint64_t hand_over(Jobs& jobs, uint64_t bytes);
  uint64_t divide();
  void post(Job& job, std::span<const iovec> here);
  bool take_copied();
  size_t move(std::span<const Job> batch, std::span<const iovec> here, std::vector<Done>& done);
  void move_parts(const Job& job, std::span<const iovec> here, std::vector<Done>& done);
  bool transfer(Job::Kind kind, uint64_t address, std::span<const iovec> here);
  bool change(const Job& job);
  bool alive() const;
  const ProcessMemory* memory();
  void submit(Job job);
  void finish();

  std::weak_ptr<Process> thread_;
  const Credentials who_;
  const Fd pidfd_;
  Engine& engine_;
  Jobs asked_;                // core thread
  uint64_t asked_bytes_ = 0;  // in them
  std::vector<Done> taken_;   // core thread
  // Core thread: moves are either all the copier's or all the thread's, so that none passes
  // another.
  std::optional<Copier> copier_;
  std::deque<Copied> copied_;  // moves that the copier has
  uint64_t threads_ = 0;       // moves and atomics that the thread has
  bool held_up_ = false;       // what is asked waits for the end of one of these

  std::mutex mutex_;  // for the three that follow; held for moments only
  std::condition_variable changed_;
  Jobs jobs_;
  std::vector<Done> done_;

  std::atomic<bool> has_jobs_{false};
  std::atomic<bool> has_done_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> finished_{false};
  std::atomic<bool> idle_{true};
  std::atomic<bool> waiting_{false};
  // When the thread was given work while it waited for some; 0 since it has taken it.
  std::atomic<TimeNs> given_{0};
  std::atomic<size_t> unsent_{0};  // messages that the copy thread has not seen
  EventSockets sockets_;
  uint64_t moved_ = 0;  // bytes, of the last batch
  bool opened_ = false;
  std::optional<ProcessMemory> memory_;  // copy thread
};

}  // namespace rocefs
